// Package route is the immutable routing snapshot: which deployments serve the name
// that a client asks for, and which of them serves this request.
package route

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/penstock-gateway/penstock/internal/config"
)

// Snapshot maps names to groups. It is immutable and safe for all goroutines; a reload
// makes a new one.
type Snapshot struct {
	config    *config.Config
	groups    map[string]*Group // by model name and by alias
	wildcards []*Group          // longest prefix first
}

// New compiles the snapshot of a configuration.
func New(c *config.Config) *Snapshot {
	s := &Snapshot{config: c, groups: map[string]*Group{}}
	for _, d := range c.Deployments {
		g := s.groups[d.ModelName]
		if g == nil {
			g = &Group{Name: d.ModelName}
			s.groups[d.ModelName] = g
		}
		g.Deployments = append(g.Deployments, d)
	}
	for name, g := range s.groups {
		g.weigh()
		if g.wildcard() {
			s.wildcards = append(s.wildcards, g)
			delete(s.groups, name)
		}
	}
	slices.SortFunc(s.wildcards, func(a, b *Group) int { return len(b.Name) - len(a.Name) })
	named := make(map[string]*Group, len(c.Aliases))
	for _, a := range c.Aliases {
		if g := s.groups[a.Model]; g != nil {
			named[a.Name] = g
		}
	}
	for alias, g := range named {
		s.groups[alias] = g // an alias wins over a model of its name, as in LiteLLM
	}
	return s
}

// Resolve finds the group that serves a name: an alias, a model of that name, or the
// wildcard with the longest prefix. For a wildcard the group is made for this name, with
// the deployments' IDs unchanged.
func (s *Snapshot) Resolve(name string) (*Group, bool) {
	if g, ok := s.groups[name]; ok {
		return g, true
	}
	if name == "" || strings.HasSuffix(name, "*") {
		return nil, false // a pattern is not a model
	}
	for _, g := range s.wildcards {
		prefix := strings.TrimSuffix(g.Name, "*")
		if strings.HasPrefix(name, prefix) && name != prefix {
			return g.expand(name, s.config.Prices), true
		}
	}
	return nil, false
}

// Group is the deployments behind one name, at least one.
type Group struct {
	// Name is the model_name of the configuration. For a wildcard it is the pattern,
	// so that it is safe as a label: clients cannot make new ones.
	Name        string
	Deployments []*config.Deployment

	upTo []uint64 // running sums of the weights; nil: all the same
}

// Pick chooses a deployment at random by weight (LiteLLM's simple-shuffle). The number
// must be uniform over 64 bits.
func (g *Group) Pick(random uint64) *config.Deployment {
	n := len(g.Deployments)
	if g.upTo == nil {
		return g.Deployments[below(random, uint64(n))]
	}
	at := below(random, g.upTo[n-1])
	// The first whose sum is above the point: one of weight 0 is never it.
	i, _ := slices.BinarySearchFunc(g.upTo, at, func(sum, at uint64) int {
		if sum > at {
			return 1
		}
		return -1
	})
	return g.Deployments[i]
}

// below maps a uniform number to [0, n) by its high bits.
func below(random, n uint64) uint64 {
	high, _ := bits.Mul64(random, n)
	return high
}

// weigh sums the weights; where all are 0, all are the same.
func (g *Group) weigh() {
	var sum uint64
	sums := make([]uint64, len(g.Deployments))
	for i, d := range g.Deployments {
		sum += uint64(d.Weight)
		sums[i] = sum
	}
	if sum > 0 && sum <= math.MaxInt64 {
		g.upTo = sums
	}
}

func (g *Group) wildcard() bool { return g.Deployments[0].Wildcard() }

func (g *Group) expand(name string, prices config.Prices) *Group {
	made := &Group{Name: g.Name, upTo: g.upTo, Deployments: make([]*config.Deployment, len(g.Deployments))}
	for i, d := range g.Deployments {
		made.Deployments[i] = d.For(name, prices)
	}
	return made
}
