// Philox4x32-10 (Salmon 2011): the same draw on any device and in any order (spec 3.10).
#pragma once
#include "common.cuh"

__device__ __forceinline__ uint32 philox_word(uint32 key_0, uint32 key_1, uint32 counter_0, uint32 counter_1,
                                              uint32 counter_2, uint32 counter_3) {
    constexpr uint32 FACTOR_0 = 0xD2511F53u, FACTOR_1 = 0xCD9E8D57u, WEYL_0 = 0x9E3779B9u, WEYL_1 = 0xBB67AE85u;
    for (int round = 0; round < 10; ++round) {
        uint32 high_0 = __umulhi(FACTOR_0, counter_0), low_0 = FACTOR_0 * counter_0;
        uint32 high_1 = __umulhi(FACTOR_1, counter_2), low_1 = FACTOR_1 * counter_2;
        counter_0 = high_1 ^ counter_1 ^ key_0;
        counter_1 = low_1;
        counter_2 = high_0 ^ counter_3 ^ key_1;
        counter_3 = low_0;
        key_0 += WEYL_0;
        key_1 += WEYL_1;
    }
    return counter_0;
}

// When a transmission is lost: `threshold` is floor(loss * 2^32), `seed` the key, `epoch_counter` epoch * 4096.
struct Losses {
    int64 threshold, seed, epoch_counter;

    __device__ bool hit(int64 round, int32 source, int32 target, int64 diff) const {
        uint32 word = philox_word(uint32(seed), uint32(uint64(seed) >> 32), uint32(epoch_counter + round),
                                  uint32(source), uint32(target), uint32(diff));
        return int64(word) < threshold;
    }
};
