// Which small files lie side by side, so that one file could take the place of all of them.
//
// A commit whose keys follow those of the commit before overlaps nothing: its file goes straight to
// the bottom and stays there, however small it is. One queue that is sent a message now and then,
// or the history of one queue, would leave a file for every commit: each costs a kilobyte, an open
// file when it is read, and a line in every new manifest.
//
//   SM1  A crowd is kCrowdMin neighbours of one level or more, each smaller than kSmallFile, whose
//        keys are all of one run (see batch_plan.h). So a merged file ends where its run does, and
//        later commits at the end of another run still overlap nothing.
#pragma once

#include <rocksdb/metadata.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stanchion::store {

inline constexpr std::size_t kCrowdMin = 32;
inline constexpr std::uint64_t kSmallFile = std::uint64_t{1} << 20;

struct Crowd {
  std::string first;  // Keys, both included.
  std::string last;
};

std::vector<Crowd> find_crowds(std::vector<rocksdb::LiveFileMetaData> files);

}  // namespace stanchion::store
