package admin

import "net/http"

func (a *api) newTag(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	tag, err := a.newNamed(w, r, tags)
	return map[string]any{"message": "tag created", "tag": tag}, err
}

func (a *api) updateTag(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	tag, err := a.updateNamed(w, r, tags)
	return map[string]any{"message": "tag updated", "tag": tag}, err
}

func (a *api) deleteTag(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.remove(w, r, tags)
}

// tagInfo shows the named tags that exist, by name.
func (a *api) tagInfo(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	list, err := a.named(w, r, tags, "names")
	if err != nil {
		return nil, err
	}
	byName := make(map[string]any, len(list))
	for _, tag := range list {
		byName[tag["name"].(string)] = tag
	}
	return byName, nil
}

func (a *api) listTags(w http.ResponseWriter, r *http.Request, _ caller) (any, error) {
	return a.listAll(w, r, tags)
}
