//go:build race

package stack

const underRace = true
