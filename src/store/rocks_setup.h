// How RocksDB is set up for checkpoints, and what its errors mean for us. Only for this folder.
#pragma once

#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/incoming_table.h"
#include "store/rocks_store.h"

namespace stanchion::store {

// Counts merged bytes, and remembers errors that happened on RocksDB's own threads.
class StoreListener final : public rocksdb::EventListener {
 public:
  void OnCompactionCompleted(rocksdb::DB* db, const rocksdb::CompactionJobInfo& info) override;
  void OnExternalFileIngested(rocksdb::DB* db,
                              const rocksdb::ExternalFileIngestionInfo& info) override;
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override;

  std::uint64_t merged() const { return merged_.load(); }

  // True once after a merge met damage. From then on nothing is merged, so that the rest of the
  // store can be used.
  bool take_merge_met_damage() { return merge_met_damage_.exchange(false); }

  // The first error after which the process must end: any error but a full disk, and also a full
  // disk if it occurred while writing the manifest, whose end is then unknown.
  std::optional<Failure> fatal() const;

  // What was ingested since the last call.
  IngestedTables take_ingested();

  // True once after a full disk stopped merging.
  bool take_out_of_space() { return out_of_space_.exchange(false); }

 private:
  std::atomic<std::uint64_t> merged_{0};
  std::atomic<bool> out_of_space_{false};
  std::atomic<bool> merge_met_damage_{false};
  mutable std::mutex mutex_;
  std::optional<Failure> fatal_;
  IngestedTables ingested_;
};

rocksdb::Options make_options(const RocksOptions& options);

// The tables of a store that cannot even be opened, as text to add to a message; often empty.
std::string unreadable_tables(const std::string& path);

// The status as printable text: it may quote bytes of a damaged file.
std::string text_of(const rocksdb::Status& status);

// `doing` as in "cannot commit to the store /data/0/store".
std::unexpected<Failure> rocks_failure(const std::string& doing, const rocksdb::Status& status);

inline rocksdb::Slice slice(std::string_view text) {
  return {text.data(), text.size()};
}
inline std::string_view view(const rocksdb::Slice& text) {
  return {text.data(), text.size()};
}

}  // namespace stanchion::store
