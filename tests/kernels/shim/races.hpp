// Finds two threads that touch the same word without order between them, whether or not it made a difference this time.
//
// Each thread has a clock that moves on at every barrier and warp operation it takes part in, and knows up to where it has
// seen those of the lanes of its warp (by warp operations) and of its block (by barriers). A word remembers who wrote and
// who read it last; an access that has not seen those is a race, unless both are atomic (or volatile) or both read.
// Threads of different blocks are never in order within a launch.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace shim {

struct Clock {
    std::int64_t thread = -1;  // number in the launch
    std::int64_t block = -1;
    unsigned warp = 0, lane = 0;
    std::uint32_t now = 1, barriers = 0;
    std::uint32_t seen[32] = {};  // of the warp's lanes
};

enum Kind { READ = 0, WRITE = 1, ATOMIC = 2 };

class Races {
    struct Access {
        std::int64_t thread = -1, block = -1;
        unsigned warp = 0, lane = 0;
        std::uint32_t at = 0, barriers = 0;
        Kind kind = READ;
    };
    struct Word {
        std::uintptr_t key = 0;
        std::uint64_t launch = 0;
        Access write;
        Access reads[2];
        unsigned next = 0;
    };
    std::vector<Word> words = std::vector<Word>(1 << 12);
    std::uint64_t launch = 0;
    std::size_t used = 0;

    static bool in_order(const Access &before, const Clock &clock) {
        if (before.thread < 0 || before.thread == clock.thread) return true;
        if (before.block != clock.block) return false;
        if (before.barriers < clock.barriers) return true;
        return before.warp == clock.warp && before.at <= clock.seen[before.lane];
    }

    Word &find(std::uintptr_t key) {
        if (2 * used > words.size()) grow();
        std::size_t place = (key * 0x9E3779B97F4A7C15ull >> 20) & (words.size() - 1);
        while (words[place].launch == launch && words[place].key != key) place = (place + 1) & (words.size() - 1);
        if (words[place].launch != launch) {
            words[place] = Word();
            words[place].key = key;
            words[place].launch = launch;
            ++used;
        }
        return words[place];
    }

    void grow() {
        std::vector<Word> old(2 * words.size());
        old.swap(words);
        for (const Word &word : old) {
            if (word.launch != launch) continue;
            std::size_t place = (word.key * 0x9E3779B97F4A7C15ull >> 20) & (words.size() - 1);
            while (words[place].launch == launch) place = (place + 1) & (words.size() - 1);
            words[place] = word;
        }
    }

  public:
    void begin() {
        ++launch;
        used = 0;
    }

    // Note an access to a word of four bytes, or to a byte of a smaller one; return what it races with, or an empty string.
    std::string note(std::uintptr_t key, Kind kind, const Clock &clock) {
        Word &word = find(key);
        Access mine{clock.thread, clock.block, clock.warp, clock.lane, clock.now, clock.barriers, kind};
        std::string found;
        if (!in_order(word.write, clock) && !(kind == ATOMIC && word.write.kind == ATOMIC)) {
            found = kind == READ ? "reads what" : "writes what";
            found += told(word.write, "wrote");
        }
        for (const Access &read : word.reads) {
            if (kind == READ || in_order(read, clock)) continue;
            found = "writes what" + told(read, "read");
        }
        if (kind == READ) {
            word.reads[word.next] = mine;
            if (word.reads[0].thread != word.reads[1].thread) word.next ^= 1u;
        } else {
            word.write = mine;
        }
        return found;
    }

  private:
    static std::string told(const Access &access, const char *did) {
        return " thread " + std::to_string(access.warp * 32 + access.lane) + " of block " +
               std::to_string(access.block) + " " + did + " without order between them";
    }
};

} // namespace shim
