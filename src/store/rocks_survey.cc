#include <rocksdb/db.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/table_properties.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "os/real_directory.h"
#include "store/manifest_check.h"
#include "store/rocks_setup.h"
#include "store/rocks_store.h"

namespace stanchion::store {
namespace {

// Opens the table and checks the one field that has no checksum: RocksDB's older releases wrote a
// number there afterwards, ours never does.
rocksdb::Status open_table(rocksdb::SstFileReader& reader, const std::string& path) {
  const rocksdb::Status status = reader.Open(path);
  if (!status.ok()) return status;
  const auto& properties = reader.GetTableProperties()->user_collected_properties;
  const auto number = properties.find("rocksdb.external_sst_file.global_seqno");
  if (number != properties.end() && number->second != std::string(8, '\0'))
    return rocksdb::Status::Corruption("the global sequence number is not zero in " + path);
  return status;
}

FileReport survey_table(const std::filesystem::path& path, const rocksdb::Options& setup) {
  FileReport report;
  report.path = path.string();
  std::error_code error;
  report.size = std::filesystem::file_size(path, error);
  rocksdb::SstFileReader reader(setup);
  rocksdb::Status status = open_table(reader, report.path);
  if (status.ok()) {
    report.entries = reader.GetTableProperties()->num_entries;
    status = reader.VerifyChecksum();
  }
  if (!status.ok()) report.problem = text_of(status);
  return report;
}

// Whether the manifest and the tables agree.
FileReport survey_manifest(const std::string& path) {
  FileReport report;
  report.path = path + "/CURRENT";
  std::error_code error;
  report.size = std::filesystem::file_size(report.path, error);
  if (error) {
    report.problem = error.message();
    return report;
  }
  if (auto opened = RocksStore::open_read_only(path); !opened)
    report.problem = opened.error().message;
  return report;
}

std::vector<std::filesystem::path> list_tables(const std::string& path, std::error_code& error) {
  std::vector<std::filesystem::path> tables;
  for (std::filesystem::directory_iterator entry(path, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".sst") tables.push_back(entry->path());
  }
  std::sort(tables.begin(), tables.end());
  return tables;
}

}  // namespace

std::string unreadable_tables(const std::string& path) {
  const rocksdb::Options setup = make_options({});
  std::string text;
  std::error_code error;
  for (const std::filesystem::path& table : list_tables(path, error)) {
    rocksdb::SstFileReader reader(setup);
    if (!open_table(reader, table.string()).ok())
      text += (text.empty() ? ", unreadable: " : ", ") + table.filename().string();
  }
  return text;
}

Result<bool> has_store(const std::string& path) {
  const auto exists = os::exists(path);
  if (!exists || !*exists) return exists;
  const auto directory = os::open_existing_directory(path);
  if (!directory) return std::unexpected(directory.error());
  const auto names = (*directory)->list();
  if (!names) return std::unexpected(names.error());
  return std::ranges::any_of(*names, [](const std::string& name) {
    return name == "CURRENT" || name == kNoteName || name.ends_with(".sst");
  });
}

Result<std::vector<FileReport>> survey(const std::string& path) {
  std::error_code error;
  const std::vector<std::filesystem::path> tables = list_tables(path, error);
  if (error) return fail("cannot list " + path + ": " + error.message(), error.value());

  const rocksdb::Options setup = make_options({});
  std::vector<FileReport> reports;
  reports.push_back(survey_manifest(path));
  for (const std::filesystem::path& table : tables) {
    FileReport report = survey_table(table, setup);
    if (report.problem.empty() || std::filesystem::exists(table, error))
      reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace stanchion::store
