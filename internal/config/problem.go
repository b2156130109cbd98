package config

import (
	"errors"
	"fmt"
	"slices"
)

// maxProblems bounds one report.
const maxProblems = 25

// Problem is one thing that keeps a configuration from loading.
type Problem struct {
	File string
	position
	Path string // dotted, e.g. "model_list[2].litellm_params.timeout"; empty: the file as a whole
	Text string
}

// Line of the file, from 1; 0: no place in the file.
func (p *Problem) Line() int { return p.line }

// Error reads "FILE:LINE:COLUMN: cannot use PATH: what is wrong".
func (p *Problem) Error() string {
	where := p.File
	if p.line > 0 {
		where += fmt.Sprintf(":%d:%d", p.line, p.column)
	}
	if p.Path != "" {
		return where + ": cannot use " + p.Path + ": " + p.Text
	}
	return where + ": cannot read the configuration: " + p.Text
}

// problems joins what was found, in the order of the file.
func problems(found []*Problem) error {
	slices.SortStableFunc(found, func(a, b *Problem) int { return a.line - b.line })
	all := make([]error, 0, len(found))
	for i, p := range found {
		if i == maxProblems {
			all = append(all, fmt.Errorf("and %d more", len(found)-i))
			break
		}
		all = append(all, p)
	}
	return errors.Join(all...)
}
