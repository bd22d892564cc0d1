// For programs that are compiled to be counted but have no fuzz driver: its counter, doing nothing.
extern "C" void __sanitizer_cov_trace_pc() {}
