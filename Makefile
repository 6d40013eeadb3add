# Souk's front door. `make demo` and `make test` install what they need, build and run.
#
#   make          build the program at build/souk
#   make demo     a market, three unequal lenders, one real training job
#   make test     every test
#   make bench    the measurements behind docs/benchmarks.md
#   make sim      every experiment of `souk sim market` on the traces in SOUK_DATA
#   make lint     format, clang-tidy and style gates
#   make format   bring the sources into the house format
#   make asan | tsan | fuzz-replay | fuzz    the sanitizer and fuzzing stages of CI
#   make install  copy the program and its manual below PREFIX (/usr/local)

PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
SOURCES = $(shell git ls-files 'src/*.c' 'src/*.h')

.PHONY: all deps web demo test bench sim lint format asan tsan clang fuzz fuzz-replay install clean

all: deps web
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@ln -sfn release/souk build/souk

deps:
	@tools/install-deps

web:
	@tools/build-web

demo: all
	@build/souk demo

test: all
	@tools/run-tests release

bench: all
	@tools/install-deps --bench
	@for bench in bench/*.py; do echo "== $$bench"; $$bench || exit 1; done

SOUK_DATA ?= traces
sim: all
	@build/souk sim market --data $(SOUK_DATA)

lint:
	@tools/install-deps --lint
	@tools/lint

format:
	@tools/install-deps --lint
	@clang-format-14 -i $(SOURCES)

# Not the demo and the browser: the same ways of a job are in system/server_job, in less time.
asan: deps web
	@tools/run-tests asan -LE 'demo|bench|browser|fuzz-replay|simulation'

# What has threads. The sandbox does not take TSan's address space, so no whole programs.
tsan: deps web
	@tools/run-tests tsan -L 'unit|integration'

clang: deps web
	@tools/run-tests clang

fuzz-replay: deps
	@tools/run-tests asan -L fuzz-replay

fuzz: deps
	@tools/install-deps --lint
	@tools/fuzz

install: all
	install -D -m 755 build/release/souk $(DESTDIR)$(PREFIX)/bin/souk
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 \
	           $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	build/souk man > $(DESTDIR)$(PREFIX)/share/man/man1/souk.1
	build/souk completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/souk

clean:
	rm -rf build
