// docs/adr/0005-store.md says why each option is as it is.
#include "store/rocks_setup.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/rate_limiter.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "store/plain_files.h"

#include "store/guarded_file_system.h"

namespace stanchion::store {
namespace {

// RocksDB reports everything that matters by statuses; its own log would grow beside ours.
class SilentLogger final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

// Lack of space or of descriptors: a later try may succeed.
bool is_out_of_space(const rocksdb::Status& status) {
  if (status.ok()) return false;
  if (status.IsNoSpace()) return true;
  const std::string text = status.ToString();
  return std::ranges::any_of(std::initializer_list<int>{EDQUOT, EMFILE, ENFILE}, [&](int error) {
    return text.find(std::strerror(error)) != std::string::npos;
  });
}

// Shared by the process, as RocksDB's own environment is: its threads may outlive static
// destructors.
rocksdb::Env* plain_env() {
  static rocksdb::Env* const env =
      rocksdb::NewCompositeEnv(std::make_shared<PlainFileSystem>()).release();
  return env;
}

rocksdb::BlockBasedTableOptions table_options(const RocksOptions& options) {
  rocksdb::BlockBasedTableOptions table;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  table.block_size = 16 << 10;
  table.index_block_restart_interval = 16;
  // Indexes count as cache, so that memory does not grow with the backlog.
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.block_cache = rocksdb::NewLRUCache(options.cache_size, /*num_shard_bits=*/0,
                                           /*strict_capacity_limit=*/false,
                                           /*high_pri_pool_ratio=*/0.5);
  table.max_auto_readahead_size = 64 << 10;
  return table;
}

rocksdb::CompressionType compression_type(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return rocksdb::kNoCompression;
    case Compression::kLz4:
      return rocksdb::kLZ4Compression;
    case Compression::kZstd:
      return rocksdb::kZSTD;
  }
  return rocksdb::kNoCompression;
}

}  // namespace

void StoreListener::OnCompactionCompleted(rocksdb::DB* /*db*/,
                                          const rocksdb::CompactionJobInfo& info) {
  merged_ += info.stats.total_output_bytes;
}

void StoreListener::OnBackgroundError(rocksdb::BackgroundErrorReason reason,
                                      rocksdb::Status* status) {
  const bool manifest = reason == rocksdb::BackgroundErrorReason::kManifestWrite ||
                        reason == rocksdb::BackgroundErrorReason::kManifestWriteNoWAL;
  if (is_out_of_space(*status) && !manifest) {
    out_of_space_ = true;
    return;
  }
  // A block that cannot be read stays where it is; reads of it report the damage. The merge changed
  // nothing, and RocksDB is told that it did not happen.
  const bool merging = reason == rocksdb::BackgroundErrorReason::kCompaction;
  if (merging && (status->IsCorruption() || is_failed_read(*status))) {
    merge_met_damage_ = true;
    *status = rocksdb::Status::OK();
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!fatal_) {
    fatal_ = Failure{manifest ? "cannot write the manifest: " + status->ToString()
                              : "cannot merge files: " + status->ToString(),
                     0};
  }
}

void StoreListener::OnExternalFileIngested(rocksdb::DB* /*db*/,
                                           const rocksdb::ExternalFileIngestionInfo& info) {
  const std::lock_guard lock(mutex_);
  ingested_[info.external_file_path] = {info.internal_file_path, info.table_properties.num_entries,
                                        info.table_properties.num_range_deletions};
}

IngestedTables StoreListener::take_ingested() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ingested_, {});
}

std::optional<Failure> StoreListener::fatal() const {
  const std::lock_guard lock(mutex_);
  return fatal_;
}

rocksdb::Options make_options(const RocksOptions& options) {
  rocksdb::Options result;
  result.env = options.env != nullptr ? options.env : plain_env();
  result.info_log = std::make_shared<SilentLogger>();
  result.info_log_level = rocksdb::ERROR_LEVEL;
  result.stats_dump_period_sec = 0;
  result.stats_persist_period_sec = 0;

  result.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table_options(options)));
  result.compression = compression_type(options.compression);
  result.compression_opts.level = options.compression == Compression::kZstd ? 1 : 0;
  result.bottommost_compression = rocksdb::kDisableCompressionOption;

  result.level_compaction_dynamic_level_bytes = true;
  result.max_bytes_for_level_base = std::uint64_t{16} << 20;
  result.target_file_size_base = std::uint64_t{16} << 20;
  result.level0_file_num_compaction_trigger = 8;
  result.ttl = 0;
  result.periodic_compaction_seconds = 0;
  result.compaction_readahead_size = 256 << 10;

  // Nothing is ever written to the memtable.
  result.write_buffer_size = 64 << 10;
  result.arena_block_size = 4 << 10;
  result.max_write_buffer_number = 2;

  result.max_open_files = 64;
  result.max_background_jobs = 2;
  result.max_subcompactions = 1;
  result.bytes_per_sync = 1 << 20;
  if (options.merge_bytes_per_second > 0) {
    result.rate_limiter.reset(
        rocksdb::NewGenericRateLimiter(static_cast<std::int64_t>(options.merge_bytes_per_second)));
  }
  result.max_manifest_file_size = options.manifest_size_max;
  result.manifest_preallocation_size = 128 << 10;
  result.keep_log_file_num = 1;
  result.avoid_unnecessary_blocking_io = true;
  return result;
}

std::string text_of(const rocksdb::Status& status) {
  std::string text = status.ToString();
  const bool utf8 = is_utf8(text);
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) c = '?';
  }
  return text;
}

std::unexpected<Failure> rocks_failure(const std::string& doing, const rocksdb::Status& status) {
  std::string message = doing + ": " + text_of(status);
  // RocksDB tries an old file name last, and reports that one.
  if (const std::size_t old = message.find(".ldb:"); old != message.npos)
    message.replace(old, 4, ".sst");
  if (status.IsCorruption()) {
    message +=
        "; the disk or another program damaged the file: see with stanchion repair --dry-run what "
        "is readable, then let it bring that back, or restore a backup";
  }
  return fail(std::move(message), is_out_of_space(status) ? ENOSPC : 0);
}

}  // namespace stanchion::store
