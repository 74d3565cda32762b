// What every kernel shares: integer types of fixed width, and the conventions of kernels/README.md.
#pragma once

typedef signed char int8;
typedef int int32;
typedef unsigned int uint32;
typedef long long int64;
typedef unsigned long long uint64;

#ifndef HYPHAE_SHIM
// Shared memory whose size the launch gives, as `name`, a pointer to `type`.
#define DYNAMIC_SHARED(type, name)                                                                                    \
    extern __shared__ __align__(16) unsigned char name##_bytes[];                                                     \
    type *name = reinterpret_cast<type *>(name##_bytes)
#endif

inline constexpr int WARP = 32;
inline constexpr uint32 ALL_LANES = 0xffffffffu;

// Float32 to float64 and back, exactly. CuPy compiles with -ftz=true, so that a plain cast makes 0 of what is below 2^-126.
__device__ __forceinline__ double widened(float value) {
#ifdef HYPHAE_SHIM
    return double(value);
#else
    double wide;
    asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(value));
    return wide;
#endif
}
__device__ __forceinline__ float narrowed(double value) {
#ifdef HYPHAE_SHIM
    return float(value);
#else
    float narrow;
    asm("cvt.rn.f32.f64 %0, %1;" : "=f"(narrow) : "d"(value));
    return narrow;
#endif
}

// The thread's number in the launch and how many threads the launch has: a loop over any count of items.
__device__ __forceinline__ int64 first_item() { return int64(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ int64 all_threads() { return int64(gridDim.x) * blockDim.x; }

// The same by warps. Blocks are whole warps.
__device__ __forceinline__ int64 first_warp() { return first_item() / WARP; }
__device__ __forceinline__ int64 all_warps() { return all_threads() / WARP; }
__device__ __forceinline__ int lane_of_warp() { return int(threadIdx.x % WARP); }

// The sum of a value over neighbouring lanes, 2^k of them, in each of them. All lanes of the warp have to call it.
template <class T> __device__ __forceinline__ T sum_over_lanes(T value, int64 lanes) {
    for (int64 step = lanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, int(step));
    return value;
}
