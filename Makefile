# Souk's front door. `make demo` and `make test` install what they need, build and run.
#
#   make          build the program at build/souk
#   make demo     a market, three unequal lenders, one real training job
#   make test     the tests, as CI runs them
#   make test-all   everything that `make test` leaves out, then one table; as root, hours
#   make coverage  the tests, and the lines they ran, by folder
#   make bench    the measurements behind docs/benchmarks.md
#   make sim      every experiment of `souk sim market` on the traces in SOUK_DATA
#   make lint     format and style gates; clang-tidy on a fixed third of the files and on what changed (lint-all: on all)
#   make format   bring the sources into the house format
#   make asan | tsan | fuzz-replay | fuzz    the sanitizer and fuzzing stages of CI (asan-all: with the long tests)
#   make arm64    cross build for arm64, and its unit tests under qemu-user
#   make lambda   the zips of the function for AWS Lambda in build/: of this machine's kind, and of arm64 by a cross build
#   make install  copy the program, libsouk, its manual, completions and service below PREFIX (/usr/local)
#   make deb      a Debian package of it in build/; make test-deb tries it in a bare Debian
#   make service-test   the package under systemd, in a virtual machine

PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
SOURCES = $(shell git ls-files 'src/*.c' 'src/*.h' 'include/*.h' 'examples/*.c')

.PHONY: all deps test-deps web demo test simulation test-all test-frameworks test-sources test-cloud test-lambda test-slurm bench reference sim lint lint-all format asan asan-all tsan tsan-system clang coverage sanitized fuzz fuzz-replay arm64 lambda lambda-here lambda-arm64 install install-files deb test-deb service-test clean

all: deps web
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)
	@ln -sfn release/souk build/souk

deps:
	@tools/install-deps

test-deps:
	@tools/install-deps --test

web:
	@tools/build-web $(WEB_OPTION)

demo: all
	@build/souk demo

# Offline, nothing is installed and the other tests still run.
test asan tsan coverage: WEB_OPTION = --may-lack
# `make test` runs the first seeds of each property test; test-all has a suite for the long runs.
test: all test-deps
	@tools/run-tests release -LE soak

simulation: all
	@tools/run-tests release -L soak

# Everything that `make test` leaves out. Each target below is one of its suites.
test-all:
	@tools/test-all

test-frameworks test-sources test-cloud test-slurm test-lambda reference tsan-system:
	@tools/test-all $(@:test-%=%)

# bench/frameworks.py runs the programs in bench/frameworks. Exit status 77 means skipped.
bench: all test-deps
	@tools/install-deps --bench
	@for bench in bench/*.py; do echo "== $$bench"; $$bench || [ $$? = 77 ] || exit 1; done

SOUK_DATA ?= traces
sim: all
	@build/souk sim market --data $(SOUK_DATA)

lint:
	@tools/install-deps --lint
	@tools/lint

lint-all:
	@tools/install-deps --lint
	@tools/lint --all

format:
	@tools/install-deps --lint
	@clang-format-14 -i $(SOURCES)

# Not the demo and the browser: the same ways of a job are in system/server_job, in less time.
ASAN_TESTS = -LE 'demo|bench|browser|fuzz-replay|simulation|long'
asan: deps test-deps web
	@tools/run-tests asan $(ASAN_TESTS)

asan-all: deps test-deps web
	@tools/run-tests asan -LE 'demo|bench|browser|fuzz-replay|simulation' $(CTEST)

# The modules that start threads, or whose tests do; of the simulator the runs that go side by side. The
# sandbox does not take TSan's address space, so no whole programs.
TSAN_TESTS = -R '^(blob|cli|exchange|library|net|peer|server|source|sim/sync_run|store|worker).*_test$$' -LE simulation
tsan: deps test-deps web
	@tools/run-tests tsan $(TSAN_TESTS)

# What asan, fuzz-replay and tsan run, built and not run.
sanitized: deps web
	@tools/run-tests --build asan $(ASAN_TESTS)
	@tools/run-tests --build tsan $(TSAN_TESTS)

# Counts the lines that ran, folder by folder.
coverage: deps test-deps web
	@find build/coverage -name '*.gcda' -delete 2>/dev/null || :
	@tools/run-tests coverage -LE "bench|soak"; status=$$?; tools/coverage; exit $$status

clang: deps test-deps web
	@tools/run-tests clang

fuzz-replay: deps
	@tools/run-tests asan -L fuzz-replay

fuzz: deps
	@tools/install-deps --lint
	@tools/fuzz

# Left out, since qemu-user has no namespaces, seccomp filters or cgroups to try them in, and shows
# processes without their threads: everything that starts a sandbox, and the reading of process trees.
# Debian 12's has no openat2 either, which opens what lies in an image's layer and in a function's store.
ARM64_LEFT_OUT = blob/image_layer_test|function/(driver|handler|lead|object_store)_test|worker/caller_test|sandbox/(confine|escape|process_tree|sandbox|sandbox_network|sandbox_program)_test|style
arm64: web
	@tools/install-deps --arm64
	@tools/arm64-root build/arm64-root
	@tools/run-tests arm64 -L unit -E '^($(ARM64_LEFT_OUT))$$' $(CTEST)

# The function for AWS Lambda, with the libraries it needs.
lambda: lambda-here lambda-arm64

lambda-here: all
	@tools/lambda_zip.py build/release/souk build/souk-lambda-$(shell uname -m).zip

ifeq ($(shell uname -m),aarch64)
lambda-arm64: lambda-here
else
lambda-arm64: web
	@tools/install-deps --arm64
	@tools/arm64-root build/arm64-root
	@cmake --preset arm64 >/dev/null
	@cmake --build --preset arm64 -j $(JOBS) --target souk
	@tools/lambda_zip.py build/arm64/souk build/souk-lambda-aarch64.zip --root build/arm64-root --strip aarch64-linux-gnu-strip
endif

install: all install-files

# The files alone, of what is built.
install-files:
	install -D -m 755 build/release/souk $(DESTDIR)$(PREFIX)/bin/souk
	install -d $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include/souk
	cp -P build/release/libsouk.so build/release/libsouk.so.* $(DESTDIR)$(PREFIX)/lib/
	install -m 644 include/souk/*.h $(DESTDIR)$(PREFIX)/include/souk/
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/lib/systemd/system \
	           $(DESTDIR)$(PREFIX)/share/bash-completion/completions \
	           $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions \
	           $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d \
	           $(DESTDIR)$(PREFIX)/share/doc/souk/examples
	build/release/souk man > $(DESTDIR)$(PREFIX)/share/man/man1/souk.1
	build/release/souk completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/souk
	build/release/souk completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/vendor-completions/_souk
	build/release/souk completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/souk.fish
	sed 's|/usr/bin/souk|$(PREFIX)/bin/souk|' packaging/souk-lend.service \
	    > $(DESTDIR)$(PREFIX)/lib/systemd/system/souk-lend.service
	install -m 644 packaging/souk-lend.default $(DESTDIR)$(PREFIX)/share/doc/souk/examples/souk-lend

deb: all
	@tools/build-deb

service-test: deb
	@tools/install-deps --service
	@tools/service-test

test-deb: deb
	@tools/install-deps --lint
	@tools/test-deb

clean:
	rm -rf build
