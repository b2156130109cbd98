// Package money knows amounts, prices and what a usage costs.
//
// Amounts are int64 nano-dollars (1e-9 USD), prices are int64 pico-dollars (1e-12
// USD) per token, so that a list price of 0.0375 USD per million tokens, 37,500
// pico-dollars, is exact. Floats appear nowhere: decimals are read and written as
// text. All values are immutable after they were made and may be shared between
// goroutines.
package money
