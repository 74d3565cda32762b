// Kernels that CUDA leaves undefined.
#include "common.cuh"

extern "C" __global__ void early_exit(int64 *out) {
    if (threadIdx.x == 5) return;
    out[threadIdx.x] = __ballot_sync(ALL_LANES, 1);
}

// Some lanes wait for the block, others for their warp.
extern "C" __global__ void half_barrier(int64 *out) {
    if (threadIdx.x % 2 == 0) __syncthreads();
    out[threadIdx.x] = __ballot_sync(ALL_LANES, 1);
    if (threadIdx.x % 2 == 1) __syncthreads();
}

extern "C" __global__ void other_operations(int64 *out) {
    if (threadIdx.x % 2 == 0) out[threadIdx.x] = __ballot_sync(ALL_LANES, 1);
    else out[threadIdx.x] = __shfl_sync(ALL_LANES, 1, 0);
}

extern "C" __global__ void other_masks(int64 *out) {
    out[threadIdx.x] = __ballot_sync(threadIdx.x % 2 == 0 ? ALL_LANES : 0x7fffffffu, 1);
}

extern "C" __global__ void outside_the_mask(int64 *out) { out[threadIdx.x] = __ballot_sync(0x0000ffffu, 1); }

extern "C" __global__ void lane_not_there(int64 *out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0x0000ffffu, int(threadIdx.x), 20);
}

extern "C" __global__ void beyond_the_end(int64 *out) {
    if (threadIdx.x == 0) out[64] = 1;
}

extern "C" __global__ void before_the_start(int64 *out) {
    if (threadIdx.x == 0) out[0] = out[-1];
}

// Waits for what no one does.
extern "C" __global__ void endless(int64 *out) {
    while (*static_cast<volatile int64 *>(out) == 0) {
    }
}
