# Everything a person needs has a target here; `make help` lists them.
GO      ?= go
BIN     := bin/docent
# The version that `docent version` says: the last tag and what came after it.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null | sed 's/^v//')

.PHONY: all help build run dev docs demo test test-all torture torture-nodes measure-nodes lint fmt vet fuzz bench microbench bench-journal clean

all: fmt vet lint test ## format, vet, lint and test

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build: ## build the one static binary, bin/docent
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN) ./cmd/docent

run: build ## serve the data directory ./data on 127.0.0.1:8080
	$(BIN) serve --data ./data --listen 127.0.0.1:8080

dev: ## like run, and build and restart when a file changes
	$(GO) run github.com/air-verse/air@v1.67.4 -c scripts/air.toml

docs: build ## write the documentation as a static site; DIR=bin/docs
	$(BIN) docs --export $(or $(DIR),bin/docs)

demo: build ## show the whole of Docent at work; KEEP=1 leaves the server running
	$(BIN) demo $(if $(KEEP),--keep)

test: ## run the tests; RACE=1 for the race detector, which needs a C compiler
	@./scripts/test

test-all: ## run everything, for an hour: installs browsers, hosts, generators (Debian, as root)
	@./scripts/test-all

torture: ## kill the server again and again under load; KILLS=200 CLIENTS=200 GAP=3s DURATION=2h SEED=1
	@./scripts/torture

torture-nodes: ## kill, stop and cut off nodes of a cluster under load, as root; KILLS=200 CLIENTS=100 GAP=5s SEED=1
	@./scripts/torture-nodes

lint: vet ## vet and staticcheck
	$(GO) tool staticcheck ./...

fmt: ## format the code
	gofmt -w $$(git ls-files '*.go')

vet:
	$(GO) vet ./...

fuzz: ## fuzz each target for FUZZTIME (10s)
	@./scripts/fuzz $(or $(FUZZTIME),10s)

bench: build ## measure a server under load, for some minutes; results go to bench/results (ROUNDS, SCALE, PARTS, OUT, QUICK)
	@./scripts/bench

microbench: ## run the benchmarks of every package, for benchstat (COUNT, BENCHTIME, BENCH, PACKAGES, ALL; BEFORE=commit compares)
	@./scripts/microbench $(BEFORE)

bench-journal: ## measure the journal beside a plain log file and plain bbolt; ROUNDS=25 STREAMS=100000
	@./scripts/bench-journal

measure-nodes: ## measure one to three nodes on PostgreSQL beside a single server; ROUNDS=3 BEFORE=commit
	@./scripts/measure-nodes

clean: ## remove what was built
	rm -rf bin
