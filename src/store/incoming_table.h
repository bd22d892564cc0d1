// A table of a commit on its way into the store: written, read back, and compared with the plan
// before and after RocksDB ingests it. Only for this folder.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/batch_plan.h"

namespace stanchion::store {

// What the plan says the table must hold.
struct IncomingTable {
  std::string path;
  std::string first{};  // Of all keys and erased ranges.
  std::string last{};   // The end of an erased range counts, though it is not erased itself.
  std::uint64_t entries = 0;
  std::uint64_t ranges = 0;
  std::uint64_t size = 0;  // Of the file.
};

// Writes and syncs. Also fails if RocksDB reports that it wrote something else.
Result<IncomingTable> write_table(rocksdb::DB& db, std::span<const Change> changes,
                                  const std::string& path);

// Makes the reads that RocksDB's ingestion is going to make, and fails if one fails, which the
// ingestion would not. The file system keeps the bytes; see GuardedFileSystem.
Status rehearse_ingestion(rocksdb::DB& db, const IncomingTable& table);

// What RocksDB ingested, by the path that a table had before.
struct IngestedTable {
  std::string path;
  std::uint64_t entries = 0;  // Erased ranges among them.
  std::uint64_t ranges = 0;
};
using IngestedTables = std::map<std::string, IngestedTable>;

// Whether the store has ingested the tables as they are. Tables that were already merged no longer
// exist.
Status check_ingested(rocksdb::DB& db, const std::vector<IncomingTable>& tables,
                      const IngestedTables& ingested);

}  // namespace stanchion::store
