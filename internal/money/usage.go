package money

// Usage counts the tokens of one answer. Cached and CacheWrite are parts of
// Input, Reasoning is part of Output (field names of providers differ, the
// containment does not: a part is never added on top of its total).
type Usage struct {
	Input      int64
	Output     int64
	Cached     int64 // read from the provider's prompt cache
	CacheWrite int64 // written to the provider's prompt cache
	Reasoning  int64
}
