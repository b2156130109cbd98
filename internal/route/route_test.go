package route

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-gateway/penstock/internal/config"
)

const file = `
model_list:
- {model_name: gpt-4o, litellm_params: {model: openai/gpt-4o, api_key: sk-hidden, weight: 3}, model_info: {id: first, team: platform, big: 12345678901234567}}
- {model_name: gpt-4o, litellm_params: {model: custom_openai/other, api_base: "http://own/v1", weight: 1, extra_headers: {x: sk-hidden}}, model_info: {id: second}}
- {model_name: gpt-4o, litellm_params: {model: mock/never, weight: 0}, model_info: {id: never}}
- {model_name: "openai/*", litellm_params: {model: "openai/*", api_key: sk-hidden}, model_info: {id: any}}
- {model_name: "openai/gpt-5*", litellm_params: {model: "openai/gpt-5*", api_key: sk-hidden}, model_info: {id: five}}
- {model_name: mock, litellm_params: {model: mock/mock}, model_info: {id: mock}}
- {model_name: mock, litellm_params: {model: mock/mock}, model_info: {id: mock-2}}
router_settings:
  model_group_alias: {gpt-4: gpt-4o, old: {model: mock, hidden: true}, a: gpt-4o}
`

func snapshot(t *testing.T) *Snapshot {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Load(config.Source{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return New(c)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	s := snapshot(t)
	for _, c := range []struct{ why, name, group, model string }{
		{"a model", "gpt-4o", "gpt-4o", "gpt-4o"},
		{"an alias", "gpt-4", "gpt-4o", "gpt-4o"},
		{"a hidden alias works all the same", "old", "mock", "mock"},
		{"a wildcard, named by its pattern", "openai/gpt-4.1", "openai/*", "gpt-4.1"},
		{"the longest prefix wins", "openai/gpt-5-mini", "openai/gpt-5*", "gpt-5-mini"},
		{"unknown", "gpt-99", "", ""},
		{"case matters", "GPT-4o", "", ""},
		{"nothing", "", "", ""},
		{"the pattern is no model", "openai/*", "", ""},
		{"nothing behind the prefix", "openai/", "", ""},
	} {
		g, ok := s.Resolve(c.name)
		if ok != (c.group != "") {
			t.Errorf("%s: Resolve(%q) = %v", c.why, c.name, ok)
			continue
		}
		if ok && (g.Name != c.group || g.Deployments[0].Model != c.model) {
			t.Errorf("%s: %s, %+v", c.why, g.Name, g.Deployments[0])
		}
	}
}

func TestWildcardIsPricedByItsName(t *testing.T) {
	t.Parallel()
	s := snapshot(t)
	g, _ := s.Resolve("openai/gpt-4.1-mini")
	d := g.Pick(0)
	if d.ID != "any" || d.Price == nil || d.MaxOutput != 32768 {
		t.Errorf("%+v", d)
	}
	if again, _ := s.Resolve("openai/gpt-4o"); again.Pick(0).Model != "gpt-4o" || d.Model != "gpt-4.1-mini" {
		t.Error("one request changed another's deployment")
	}
}

func TestPickFollowsWeights(t *testing.T) {
	t.Parallel()
	s := snapshot(t)
	g, _ := s.Resolve("gpt-4o")
	const steps = 4000
	got := map[string]int{}
	for i := range uint64(steps) {
		got[g.Pick(i*(math.MaxUint64/steps)+math.MaxUint64/steps/2).ID]++ // evenly over all numbers
	}
	if diff := cmp.Diff(map[string]int{"first": 3000, "second": 1000}, got); diff != "" {
		t.Error(diff)
	}
	if g.Pick(math.MaxUint64).ID != "second" || g.Pick(0).ID != "first" {
		t.Error("the ends belong to the last and first deployment with a weight")
	}
}

func TestPickWithoutWeightsIsUniform(t *testing.T) {
	t.Parallel()
	s := snapshot(t)
	g, _ := s.Resolve("mock")
	if g.Pick(0).ID != "mock" || g.Pick(math.MaxUint64/2+1).ID != "mock-2" || g.Pick(math.MaxUint64).ID != "mock-2" {
		t.Error("two equal deployments must each have half of the numbers")
	}
	all := &Group{Deployments: []*config.Deployment{{ID: "a"}, {ID: "b"}}}
	all.weigh()
	if all.Pick(math.MaxUint64).ID != "b" {
		t.Error("where every weight is 0, all are the same")
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, m := range snapshot(t).Models() {
		ids = append(ids, m.ID)
		if m.Object != "model" || m.Created == 0 || m.OwnedBy == "" {
			t.Errorf("SDKs need every field: %+v", m)
		}
	}
	if diff := cmp.Diff([]string{"a", "gpt-4", "gpt-4o", "mock", "openai/*", "openai/gpt-5*"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestInfos(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(snapshot(t).Infos())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "sk-hidden") {
		t.Error("a secret is shown")
	}
	var infos []map[string]json.RawMessage
	if err := json.Unmarshal(data, &infos); err != nil {
		t.Fatal(err)
	}
	const first = `{"big":12345678901234567,"db_model":false,"id":"first","input_cost_per_token":0.0000025,"key":"gpt-4o",` +
		`"litellm_provider":"openai","max_input_tokens":128000,"max_output_tokens":16384,"max_tokens":16384,"mode":"chat",` +
		`"output_cost_per_token":0.00001,"team":"platform"}`
	if got := string(infos[0]["model_info"]); got != first {
		t.Errorf("got  %s\nwant %s", got, first)
	}
	if got := string(infos[1]["litellm_params"]); got != `{"api_base":"http://own/v1","model":"custom_openai/other"}` {
		t.Error(got)
	}
	if got := string(infos[1]["model_info"]); !strings.Contains(got, `"input_cost_per_token":null`) {
		t.Errorf("an unpriced model must not look free: %s", got)
	}
}
