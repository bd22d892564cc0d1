#include "store/small_files.h"

#include <algorithm>
#include <tuple>

#include "store/batch_plan.h"

namespace stanchion::store {
namespace {

using rocksdb::LiveFileMetaData;

bool is_small(const LiveFileMetaData& file) {
  return file.size < kSmallFile && same_run(file.smallestkey, file.largestkey);
}

}  // namespace

std::vector<Crowd> find_crowds(std::vector<LiveFileMetaData> files) {
  // Files of level 0 may overlap each other, and RocksDB merges them when there are a few.
  std::erase_if(files, [](const LiveFileMetaData& file) { return file.level == 0; });
  std::ranges::sort(files, {}, [](const LiveFileMetaData& file) {
    return std::tie(file.level, file.smallestkey);
  });
  std::vector<Crowd> crowds;
  for (std::size_t first = 0, end = 0; first < files.size(); first = end) {
    end = first + 1;
    if (!is_small(files[first])) continue;
    while (end < files.size() && files[end].level == files[first].level && is_small(files[end]) &&
           same_run(files[first].smallestkey, files[end].smallestkey))
      ++end;
    if (end - first >= kCrowdMin)
      crowds.push_back({files[first].smallestkey, files[end - 1].largestkey});
  }
  return crowds;
}

}  // namespace stanchion::store
