#include "store/incoming_table.h"

#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <optional>

#include "store/rocks_setup.h"

namespace stanchion::store {
namespace {

class TableWriter {
 public:
  TableWriter(rocksdb::SstFileWriter& writer, const std::string& path) : writer_(writer) {
    table_.path = path;
    status_ = writer_.Open(path);
  }

  bool ok() const { return status_.ok(); }
  const rocksdb::Status& status() const { return status_; }

  void put(std::string_view key, std::string_view head, const ContentPtr& content) {
    if (!ok()) return;
    count(key, key);
    ++table_.entries;
    if (content == nullptr) {
      status_ = writer_.Put(slice(key), slice(head));
      return;
    }
    value_.assign(head).append(content->encoded());
    status_ = writer_.Put(slice(key), slice(value_));
  }

  void erase(std::string_view key) {
    count(key, key);
    ++table_.entries;
    status_ = writer_.Delete(slice(key));
  }

  void erase_range(std::string_view begin, std::string_view end) {
    count(begin, end);
    ++table_.ranges;
    status_ = writer_.DeleteRange(slice(begin), slice(end));
  }

  // Writes what is buffered and syncs.
  std::optional<IncomingTable> finish() {
    rocksdb::ExternalSstFileInfo info;
    if (ok()) status_ = writer_.Finish(&info);
    if (!ok()) return std::nullopt;
    table_.size = info.file_size;
    if (info.num_entries != table_.entries || info.num_range_del_entries != table_.ranges)
      status_ = rocksdb::Status::Corruption("it does not hold what was to be written");
    if (!ok()) return std::nullopt;
    return std::move(table_);
  }

 private:
  void count(std::string_view first, std::string_view last) {
    // Changes come in order, but a range may reach past the changes after it.
    if (table_.entries + table_.ranges == 0) table_.first = first;
    if (table_.last < last) table_.last = last;
  }

  rocksdb::SstFileWriter& writer_;
  rocksdb::Status status_;
  IncomingTable table_;
  std::string value_;  // The entry being written; kept to reuse its memory.
};

void write_change(TableWriter& table, const Change& change) {
  const auto put = [&](std::string_view key, std::string_view head, const ContentPtr& content) {
    table.put(key, head, content);
  };
  switch (change.kind) {
    case Change::Kind::kPut:
      return put(change.key, change.put->head, change.put->content);
    case Change::Kind::kPutSeries:
      return change.series->for_each(put);
    case Change::Kind::kErase:
      return table.erase(change.key);
    case Change::Kind::kEraseRange:
      return table.erase_range(change.key, change.end);
  }
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

Result<IncomingTable> write_table(rocksdb::DB& db, std::span<const Change> changes,
                                  const std::string& path) {
  const rocksdb::Options setup = db.GetOptions();
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(setup), setup, db.DefaultColumnFamily());
  TableWriter table(writer, path);
  for (const Change& change : changes) {
    if (!table.ok()) break;
    write_change(table, change);
  }
  if (auto written = table.finish()) return std::move(*written);
  return rocks_failure("cannot write " + path, table.status());
}

Status rehearse_ingestion(rocksdb::DB& db, const IncomingTable& table) {
  rocksdb::SstFileReader reader(db.GetOptions());
  rocksdb::Status status = reader.Open(table.path);
  if (status.ok()) {
    const std::unique_ptr<rocksdb::Iterator> entry(reader.NewIterator(rocksdb::ReadOptions()));
    entry->SeekToFirst();
    if (entry->status().ok()) entry->SeekToLast();
    status = entry->status();
  }
  if (!status.ok()) return rocks_failure("cannot read back " + table.path, status);
  return {};
}

Status check_ingested(rocksdb::DB& db, const std::vector<IncomingTable>& tables,
                      const IngestedTables& ingested) {
  std::vector<rocksdb::LiveFileMetaData> live;
  db.GetLiveFilesMetaData(&live);
  std::map<std::string, const rocksdb::LiveFileMetaData*> by_name;
  for (const auto& file : live) by_name[file_name(file.name)] = &file;
  const auto wrong = [&](const std::string& path, const std::string& what) {
    return fail("the store " + db.GetName() + " took in " + path + " with wrong " + what +
                ": nothing was removed from the journal");
  };
  for (const IncomingTable& table : tables) {
    const auto taken = ingested.find(table.path);
    if (taken == ingested.end()) return wrong(table.path, "name");
    if (taken->second.entries != table.entries + table.ranges ||
        taken->second.ranges != table.ranges)
      return wrong(taken->second.path, "number of entries");
    const auto file = by_name.find(file_name(taken->second.path));
    if (file == by_name.end()) continue;
    if (file->second->smallestkey != table.first || file->second->largestkey != table.last ||
        file->second->size != table.size)
      return wrong(taken->second.path, "bounds");
  }
  return {};
}

}  // namespace stanchion::store
