// Package upstream sends one HTTP/1.1 request to one place that serves a
// model, and can stop doing so at any moment. It keeps its own connection
// pools around fasthttp's codec, because fasthttp's client cannot be canceled.
//
// # Ownership
//
// A Call belongs to one request of a client and is used for one attempt after
// another. Everything in it (headers, body pieces) is only read, on the
// goroutine of Do, and never after Do has returned: the caller may reuse the
// memory then, also after a cancel.
//
// A Response borrows its header and buffers from a pool until Close. Nothing
// obtained from it may be used after Close; copy what must live longer.
//
// # Sending twice
//
// A request that costs money must not be sent twice unless it is certain that
// the first copy was not read. Do sends again by itself in one case only: a
// kept connection turns out to have been closed before the upstream's kernel
// had accepted the whole request, and nothing of an answer came. Everything
// else is left to the caller, who asks NothingSent and RequestSent.
package upstream
