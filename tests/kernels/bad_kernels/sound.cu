// Kernels that use what the shim offers as CUDA means it.
#include "common.cuh"

extern "C" __global__ void atomic_sum(uint64 *out, int64 count) {
    for (int64 i = first_item(); i < count; i += all_threads()) atomicAdd(&out[i % 8], uint64(i));
}

extern "C" __global__ void greatest(uint64 *out, int64 count) {
    for (int64 i = first_item(); i < count; i += all_threads()) {
        atomicMax(&out[i % 8], (uint64(i * 37 % 11) << 32) | uint64(~uint32(i)));
    }
}

extern "C" __global__ void with_barrier(int64 *out, int64) {
    __shared__ int64 words[64];
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x < 8) out[threadIdx.x] = words[63 - threadIdx.x];
}

extern "C" __global__ void block_sum(uint64 *out, int64 count) {
    __shared__ int64 parts[32];
    int value = 0;
    for (int64 i = first_item(); i < count; i += all_threads()) value += int(i);
    value = sum_over_lanes(value, WARP);
    if (lane_of_warp() == 0) parts[threadIdx.x / WARP] = value;
    __syncthreads();
    if (threadIdx.x > 0) return;
    int64 sum = 0;
    for (uint32 warp = 0; warp < blockDim.x / WARP; ++warp) sum += parts[warp];
    atomicAdd(&out[0], uint64(sum));
}

extern "C" __global__ void block_numbers(int64 *out, int64 count) {
    __shared__ int64 fixed;
    DYNAMIC_SHARED(int64, sized);
    if (threadIdx.x == 0) {
        fixed = blockIdx.x;
        sized[1] = blockIdx.x;
    }
    __syncthreads();
    if (threadIdx.x == 7 && int64(blockIdx.x) < count) out[blockIdx.x] = fixed + sized[1];
}

extern "C" __global__ void warp_operations(int64 *out) {
    int lane = lane_of_warp();
    out[lane] = __shfl_xor_sync(ALL_LANES, lane, 5);
    out[32 + lane] = __shfl_down_sync(ALL_LANES, lane, 3, 8);
    out[64 + lane] = __shfl_up_sync(ALL_LANES, int64(lane), 1);
    uint32 half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    out[96 + lane] = __shfl_sync(half, lane, 2, 16);
    out[128 + lane] = __ballot_sync(ALL_LANES, lane % 3 == 0);
    // bytes, lowest first: (-127, 2, -3, 4) . (127, 127, 128 as -128, -128)
    out[160 + lane] = __dp4a(0x04fd0281, int(0x80807f7fu), 0) + 0 * lane;
}
