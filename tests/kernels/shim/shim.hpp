// CUDA C++ as plain C++, for tests: a block's threads become fibers that switch wherever a real device might.
//
// Put before the text of a .cu file. Every barrier, warp operation, atomic and access to memory is a point at which
// another thread of any resident block may go on, chosen by a seed. What a device would leave undefined (a barrier that not all lanes reach,
// warp operations that do not match) stops the launch with a message. One-dimensional launches only.
#pragma once

#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace shim {

struct Index {
    unsigned x, y, z;
};
// Where the running thread is in its launch.
struct Place {
    Index thread, block, block_size, grid_size;
};
extern Place here;

enum Operation { SYNC, SHUFFLE, BALLOT };

// Called by kernels through the names that CUDA gives them.
void sync_block();
std::uint64_t sync_warp(Operation operation, unsigned mask, std::uint64_t value, int source);
void before_atomic(void *address, std::size_t size);
void *dynamic_shared();

// Called by the launcher.
using Body = void (*)(const std::uint64_t *arguments);
struct Launch {
    const std::uint64_t *arguments;
    const std::uint64_t *sizes;  // in bytes, of what an argument points to; 0 where it is no pointer
    std::int64_t count, grid, block, shared;
    std::uint64_t seed;
    std::int64_t find_races;
    std::int64_t most_accesses;  // to memory, until a launch counts as endless
};
const char *run(Body body, const Launch &launch);

template <class T> T from_word(std::uint64_t word) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

template <class T> std::uint64_t as_word(T value) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
}

// A kernel's parameters are pointers, 64-bit integers or doubles: eight bytes each, so that a launcher needs no types.
template <class... Parameters, std::size_t... Places>
void call(void (*kernel)(Parameters...), const std::uint64_t *arguments, std::index_sequence<Places...>) {
    static_assert(((std::is_pointer_v<Parameters> || std::is_same_v<Parameters, long long> ||
                    std::is_same_v<Parameters, double>) &&
                   ...),
                  "a kernel's parameters are pointers, int64 or double");
    kernel(from_word<Parameters>(arguments[Places])...);
}

template <class... Parameters> void call(void (*kernel)(Parameters...), const std::uint64_t *arguments) {
    call(kernel, arguments, std::index_sequence_for<Parameters...>{});
}

template <class... Parameters> constexpr std::int64_t parameters_of(void (*)(Parameters...)) {
    return sizeof...(Parameters);
}

inline int warp_lane() { return int(here.thread.x % 32u); }

template <class T> T shuffle(unsigned mask, T value, int source) {
    static_assert(sizeof(T) <= 8);
    return from_word<T>(sync_warp(SHUFFLE, mask, as_word(value), source));
}

} // namespace shim

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __constant__ static const
// Static shared memory lies in a section of its own, which the runtime swaps when it switches to another block.
#define __shared__ static __attribute__((section("shim_shared")))

#define threadIdx shim::here.thread
#define blockIdx shim::here.block
#define blockDim shim::here.block_size
#define gridDim shim::here.grid_size
inline constexpr int warpSize = 32;

#define __syncthreads() shim::sync_block()
inline void __syncwarp(unsigned mask = 0xffffffffu) { shim::sync_warp(shim::SYNC, mask, 0, 0); }
inline void __threadfence() {}

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
    int first = shim::warp_lane() / width * width;
    return shim::shuffle(mask, value, first + (source & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
    int lane = shim::warp_lane(), source = lane ^ lanes;
    return shim::shuffle(mask, value, source < lane / width * width + width ? source : lane);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = shim::warp_lane(), source = lane + int(delta);
    return shim::shuffle(mask, value, source < lane / width * width + width ? source : lane);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int lane = shim::warp_lane(), source = lane - int(delta);
    return shim::shuffle(mask, value, source >= lane / width * width ? source : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return unsigned(shim::sync_warp(shim::BALLOT, mask, predicate != 0, 0));
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

inline int __popc(unsigned word) { return __builtin_popcount(word); }
inline int __popcll(unsigned long long word) { return __builtin_popcountll(word); }
inline int __ffs(int word) { return __builtin_ffs(word); }
inline int __ffsll(long long word) { return __builtin_ffsll(word); }
inline int __clz(int word) { return word == 0 ? 32 : __builtin_clz(unsigned(word)); }
inline int __clzll(long long word) { return word == 0 ? 64 : __builtin_clzll((unsigned long long)word); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((std::uint64_t(a) * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline long long __double_as_longlong(double value) { return shim::from_word<long long>(shim::as_word(value)); }
inline double __longlong_as_double(long long word) { return shim::from_word<double>(std::uint64_t(word)); }

inline int __dp4a(int a, int b, int sum) {
    for (int byte = 0; byte < 4; ++byte) {
        sum += int(std::int8_t(unsigned(a) >> 8 * byte)) * int(std::int8_t(unsigned(b) >> 8 * byte));
    }
    return sum;
}

template <class T> T __ldg(const T *address) { return *address; }

struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) double2 {
    double x, y;
};
struct alignas(16) longlong2 {
    long long x, y;
};
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

#define SHIM_EXTREMES(T)                                                                                              \
    inline T min(T a, T b) { return b < a ? b : a; }                                                                  \
    inline T max(T a, T b) { return a < b ? b : a; }
SHIM_EXTREMES(int)
SHIM_EXTREMES(unsigned)
SHIM_EXTREMES(long long)
SHIM_EXTREMES(unsigned long long)
#undef SHIM_EXTREMES
inline double fmin(double a, double b) { return __builtin_fmin(a, b); }
inline double fmax(double a, double b) { return __builtin_fmax(a, b); }
inline double sqrt(double value) { return __builtin_sqrt(value); }

// One step, whatever else runs: nothing within is a place to switch at.
#define SHIM_ONE_STEP __attribute__((no_sanitize("thread"), noinline)) inline

// Only the types that CUDA has: what compiles here compiles there.
#define SHIM_ATOMIC(NAME, T, RESULT)                                                                                  \
    SHIM_ONE_STEP T NAME(T *address, T value) {                                                                              \
        shim::before_atomic(address, sizeof(T));                                                                                         \
        T old = *address;                                                                                             \
        *address = RESULT;                                                                                            \
        return old;                                                                                                   \
    }
#define SHIM_ATOMICS(T)                                                                                               \
    SHIM_ATOMIC(atomicAdd, T, old + value)                                                                         \
    SHIM_ATOMIC(atomicMax, T, old < value ? value : old)                                                              \
    SHIM_ATOMIC(atomicMin, T, value < old ? value : old)                                                              \
    SHIM_ATOMIC(atomicExch, T, value)                                                                                 \
    SHIM_ATOMIC(atomicOr, T, old | value)                                                                          \
    SHIM_ATOMIC(atomicAnd, T, old & value)                                                                         \
    SHIM_ONE_STEP T atomicCAS(T *address, T compare, T value) {                                                              \
        shim::before_atomic(address, sizeof(T));                                                                                         \
        T old = *address;                                                                                             \
        if (old == compare) *address = value;                                                                         \
        return old;                                                                                                   \
    }
SHIM_ATOMICS(int)
SHIM_ATOMICS(unsigned)
SHIM_ATOMICS(unsigned long long)
SHIM_ATOMIC(atomicMax, long long, old < value ? value : old)
SHIM_ATOMIC(atomicMin, long long, value < old ? value : old)
#undef SHIM_ATOMICS
#undef SHIM_ATOMIC

#define DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(shim::dynamic_shared())
#define HYPHAE_SHIM 1
