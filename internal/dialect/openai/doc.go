// Package openai knows the wire format of OpenAI's chat completions: it rewrites
// a request by splicing, estimates a prompt, reads usage and errors out of
// answers and streams, and writes errors and closing events of its own. It
// holds no connection and no state beyond one answer.
package openai
