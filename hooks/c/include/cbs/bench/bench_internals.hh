// The parts of CBS beside its main interface: bench::restart(), which is in bench.hh here,
// and the timer. bench::current_timer() is left out: the running benchmark is not a timer::Timer.
#ifndef TREERING_CBS_BENCH_INTERNALS_HH
#define TREERING_CBS_BENCH_INTERNALS_HH

#include <cbs/bench/bench.hh>
#include <cbs/bench/timer.hh>

#endif
