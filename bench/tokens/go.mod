module github.com/penstock-gateway/penstock/bench/tokens

go 1.26.0

require (
	github.com/penstock-gateway/penstock v0.0.0-00010101000000-000000000000
	github.com/pkoukk/tiktoken-go v0.1.8
	github.com/pkoukk/tiktoken-go-loader v0.0.2
	github.com/tiktoken-go/tokenizer v0.10.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/dlclark/regexp2 v1.11.5 // indirect
	github.com/dlclark/regexp2/v2 v2.5.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
)

replace github.com/penstock-gateway/penstock => ../..
