// Unit vectors of weighted integer sums of images (spec 1.3, 6.4).
#include "common.cuh"

// A block takes a group: cells[offsets[g]] .. cells[offsets[g + 1] - 1]. images: rows of `words` words of four
// components. The block's threads share the group's cells and words; sums holds 4 * words integers a block. The norm is
// summed by one thread, in the order of the components. having[g]: whether the sum was other than zero.
extern "C" __global__ void centroids(const int32 *images, int64 words, int64 dimension, const int64 *offsets,
                                     const int32 *cells, const int64 *weights, int64 groups, uint64 *sums, float *out,
                                     int8 *having) {
    __shared__ double norm;
    uint64 *mine = sums + 4 * words * blockIdx.x;
    int64 slices = blockDim.x > words ? blockDim.x / words : 1;
    for (int64 group = blockIdx.x; group < groups; group += gridDim.x) {
        for (int64 j = threadIdx.x; j < 4 * words; j += blockDim.x) mine[j] = 0;
        __syncthreads();
        for (int64 task = threadIdx.x; task < words * slices; task += blockDim.x) {
            int64 word = task % words, parts[4] = {0, 0, 0, 0};
            for (int64 i = offsets[group] + task / words; i < offsets[group + 1]; i += slices) {
                uint32 packed = uint32(images[cells[i] * words + word]);
                for (int byte = 0; byte < 4; ++byte) parts[byte] += weights[i] * int8(packed >> 8 * byte);
            }
            for (int byte = 0; byte < 4; ++byte) atomicAdd(&mine[4 * word + byte], uint64(parts[byte]));
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            double square = 0.0;
            for (int64 j = 0; j < dimension; ++j) square += double(int64(mine[j])) * double(int64(mine[j]));
            norm = sqrt(square);
            having[group] = square > 0.0;
        }
        __syncthreads();
        for (int64 j = threadIdx.x; j < dimension; j += blockDim.x) {
            out[group * dimension + j] = norm > 0.0 ? narrowed(double(int64(mine[j])) / norm) : 0.0f;
        }
        __syncthreads();
    }
}
