// Package jsonscan reads JSON in one strict pass and without copies: it
// validates every byte and reports where the values stand that a gateway
// needs, so that a body can be counted, priced and forwarded by splicing and
// is never encoded again.
//
// What it accepts is RFC 8259 and nothing else, with these decisions:
//
//   - Invalid UTF-8, control characters in strings, numbers such as 016, a byte
//     order mark and anything after the value are refused.
//   - A lone surrogate escape ("\ud800") is accepted, forwarded as it stands and
//     unescaped as U+FFFD, as encoding/json and Python's tiktoken do.
//   - Keys are compared after unescaping ("\u006dodel" is model) and with their
//     case ("Model" is an unknown member and passes untouched).
//   - A key that appears twice is refused where two readers could disagree about
//     money: at the top level whatever its name, below it for each member that
//     is read here.
//   - Integers are written as integers: 1.0 and 1e0 are refused for n and the
//     output caps.
//   - One reader serves the shapes of all endpoints (see Shape): a message's
//     parts mean the same wherever they stand, because upstreams are lenient
//     towards each other's forms and none of them may be free.
//   - What can hold base64 is an Item and never a text. JSON that is counted as
//     it is written (tools, schemas, a call's input where it is an object) is a
//     Schema.
package jsonscan
