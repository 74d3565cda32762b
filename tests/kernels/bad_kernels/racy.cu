// Kernels whose result depends on the order of threads. The tests must find every one.
#include "common.cuh"

// The last thread to come wins.
extern "C" __global__ void last_writer(int64 *out, int64 count) {
    for (int64 i = first_item(); i < count; i += all_threads()) out[0] = i;
}

// Another thread may add between the read and the write.
extern "C" __global__ void stale_read(int64 *out, int64 count) {
    for (int64 i = first_item(); i < count; i += all_threads()) out[i % 8] = out[i % 8] + 1;
}

// The neighbour's word may not be there yet.
extern "C" __global__ void missing_barrier(int64 *out, int64) {
    __shared__ int64 words[64];
    words[threadIdx.x] = threadIdx.x;
    if (blockIdx.x == 0 && threadIdx.x < 8) out[threadIdx.x] = words[63 - threadIdx.x];
}

// Lanes of a warp do not run in step.
extern "C" __global__ void missing_warp_barrier(int64 *out, int64) {
    __shared__ int64 words[64];
    words[threadIdx.x] = threadIdx.x;
    if (blockIdx.x == 0 && threadIdx.x < 8) out[threadIdx.x] = words[31 - threadIdx.x];
}

// All write the same, today.
extern "C" __global__ void same_word_twice(int64 *out, int64) { out[0] = 7; }

// A plain read may see any state of the sum.
extern "C" __global__ void plain_beside_atomic(uint64 *out, int64 count) {
    atomicAdd(&out[0], 1ull);
    if (out[0] > uint64(count) * 1000) out[1] = 1;
}
