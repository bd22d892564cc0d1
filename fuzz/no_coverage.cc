// For programs that are compiled for coverage but have no fuzz driver: the counting function, which
// does nothing.
extern "C" void __sanitizer_cov_trace_pc() {}
