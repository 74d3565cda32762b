// The greatest of many values, ties to the lowest number: the same in whatever order they are compared.
#pragma once
#include "common.cuh"

// number -1: none.
struct Best {
    double value;
    int32 number;

    __device__ void take(double its_value, int32 its_number) {
        if (its_number < 0) return;
        bool better = number < 0 || its_value > value || (its_value == value && its_number < number);
        if (better) *this = {its_value, its_number};
    }
};

// The best of a warp's, in all lanes. All of them have to call it.
__device__ __forceinline__ Best best_of_warp(Best best) {
    for (int step = WARP / 2; step > 0; step /= 2) {
        double value = __shfl_xor_sync(ALL_LANES, best.value, step);
        int32 number = __shfl_xor_sync(ALL_LANES, best.number, step);
        best.take(value, number);
    }
    return best;
}

// The best of a block's, in all threads. of_warps: shared memory that is nobody's until the next barrier after this.
__device__ __forceinline__ Best best_of_block(Best best, Best *of_warps) {
    best = best_of_warp(best);
    if (lane_of_warp() == 0) of_warps[threadIdx.x / WARP] = best;
    __syncthreads();
    for (unsigned warp = 0; warp < blockDim.x / WARP; ++warp) best.take(of_warps[warp].value, of_warps[warp].number);
    return best;
}
