# make serve   install what is missing, build, start the server
# make test    install what is missing, build, run every test
.PHONY: setup build serve test quick soak soak-fleet tsan fuzz bench format lint deb clean

JOBS ?= $(shell nproc)
DATA ?= ./stanchion-data

setup:
	@scripts/setup

# Packages that only tests need are not installed for this.
build:
	@scripts/setup --build
	@cmake --preset release --log-level=WARNING >/dev/null
	@ninja -C build/release -j $(JOBS) stanchion

serve: build
	build/release/stanchion serve --data $(DATA)

# Every test: the suites, the sanitizers, short fuzz runs, crashes of the real process.
test: setup
	@scripts/test

# Only the suites of the release build, to run between edits.
quick: setup
	@scripts/test --quick

# New seeds of the model, the simulation and the crash test until stopped.
soak: setup
	@scripts/soak

# A real fleet on real brokers, broken in every way that the tests know until something is wrong.
soak-fleet: build
	@ninja -C build/release -j $(JOBS) --quiet log_meddler
	@while :; do python3 tests/fleet/fleet_test.py --binary build/release/stanchion --long || exit 1; \
	  python3 tests/fleet/zones_test.py --binary build/release/stanchion --cuts 4 || exit 1; done

# The suites of the layers with threads under the thread sanitizer.
tsan: setup
	@scripts/test --only tsan

fuzz: setup
	@scripts/test --only fuzz --fuzz-seconds 600

bench: setup
	@scripts/bench

format:
	@scripts/format

# clang-tidy on every source that has changed since it last passed.
lint: setup
	@scripts/lint

# The packages for Debian, in build/release.
deb: setup build
	@ninja -C build/release -j $(JOBS) stanchion_client_archive stanchion_worker_archive
	@cd build/release && cpack -G DEB

clean:
	rm -rf build
