// Records of the control log as bytes, and the keys by which the log may be compacted.
//
//   record = "STNC", format u8, kind u8, fields
//
// Numbers are varints, except drawn ones and instants, which are u64 and i64; strings, lists and maps
// begin with their sizes. Kinds and their fields are in control_codec.cc; numbers are never reused.
//
// Nodes of two releases read each other's records: a reader skips kinds that it does not know, and
// the bytes behind the fields that it knows. So a release may add kinds, and fields at the end of a
// kind, which older records lack. What cannot be told in this way needs another format; a reader
// refuses formats that it does not know, because it cannot know what it would miss.
//
// A record of a later format begins as above and ends with the XXH3 of all before it, 8 bytes. Only
// such a record is believed to be of one: a stranger's bytes must not stop every node.
//
// Of records with the same key the log may drop all but the last (FC3 in control.h):
//
//   beat/<node>                    the last one says all
//   claim/<term>/<node>/<attempt>  the first of a term counts, so that none may displace another
//   assignment/<shard>/<term>      only one node writes in a term, and its last one counts
//   release/<shard>/<node>         the last one counts, whatever was assigned meanwhile
//   founding/<id>                  the first one counts
//   drain/<node>, move/<shard>     the last request counts
//   forget/<node>                  the node is forgotten if this is behind its last beat, and the
//                                  last of each is there
//   skip/<shard>/<offset>          all say the same
//
// Claims of all terms stay in the log, a few dozen bytes for each change of the coordinator.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fleet/control_record.h"

namespace stanchion::fleet {

inline constexpr std::size_t kControlNameSizeMax = 64;
inline constexpr std::size_t kControlTextSizeMax = 300;
inline constexpr std::size_t kControlReasonSizeMax = 160;
inline constexpr std::size_t kControlReplicasMax = 16;
// A beat says nothing of its links if there are more, and gives so many reasons.
inline constexpr std::size_t kControlLinksMax = 128;
inline constexpr std::size_t kControlLinkReasonsMax = 8;
// A beat with 256 shards has some 6 KB, and 50 KB if all of them were given up or stalled, of which no
// shard can be both. Its links have 10 KB at most.
inline constexpr std::size_t kControlRecordSizeMax = 64 << 10;

// What a fleet, a node or a zone may be called: it becomes a part of topics, keys and output.
bool is_fleet_name(std::string_view text);

std::string encode_control(const ControlRecord& record);

// nullopt: a kind that this release does not know. A failure if the bytes are no such record.
Result<std::optional<ControlRecord>> decode_control(std::string_view bytes);

// Whether decode_control() refuses the record because it is of a later format. False if it only says
// so.
bool is_of_later_format(std::string_view bytes);

std::string control_key(const ControlRecord& record);

// A reason as a record can have it: short, and harmless on a terminal.
std::string control_reason(std::string_view text);

}  // namespace stanchion::fleet
