#include "cli/manual.h"

#include <fmt/format.h>

namespace stanchion::cli {
namespace {

// Escapes text so that nothing in it is a request to the formatter.
std::string escape(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    // A dot or quote at the beginning of a line would begin a request.
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// Lines that begin with two spaces stay as they are, the others flow.
std::string paragraphs(std::string_view text) {
  std::string out;
  bool kept = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool keeps = line.starts_with("  ");
    if (keeps != kept) out += keeps ? ".PP\n.RS 2\n.nf\n" : ".fi\n.RE\n.PP\n";
    kept = keeps;
    out += line.empty() ? ".PP\n" : escape(keeps ? line.substr(2) : line) + "\n";
  }
  return kept ? out + ".fi\n.RE\n" : out;
}

std::string to_section(const CommandText& command) {
  std::string out = fmt::format(".SS {}", escape(command.name));
  for (const ArgumentText& argument : command.arguments)
    out += " " + escape(argument.required ? argument.name : "[" + argument.name + "]");
  out += fmt::format("\n{}.\n", escape(command.summary));
  for (const ArgumentText& argument : command.arguments)
    out += fmt::format(".TP\n\\fI{}\\fR\n{}.\n", escape(argument.name), escape(argument.help));
  for (const FlagText& flag : command.flags) {
    if (flag.name == "--help") continue;
    out += fmt::format(".TP\n\\fB{}\\fR", escape(flag.name));
    if (!flag.value.empty()) out += fmt::format(" \\fI{}\\fR", escape(flag.value));
    out += fmt::format("\n{}", escape(flag.help));
    if (!flag.fallback.empty()) out += fmt::format(" (default: {})", escape(flag.fallback));
    out += flag.required ? " (required).\n" : ".\n";
  }
  if (!command.notes.empty()) out += ".PP\n" + paragraphs(command.notes);
  return out;
}

constexpr std::string_view kEnding = R"(.SH ENVIRONMENT
.TP
\fBSTANCHION_CONFIG\fR
The file of settings of \fBserve\fR, as \fB\-\-config\fR.
.TP
\fBSTANCHION_\fR\fINAME\fR
Each flag of \fBserve\fR in capitals, with underscores: \fBSTANCHION_LOG_LEVEL\fR for
\fB\-\-log\-level\fR.
.TP
\fBAWS_ACCESS_KEY_ID\fR, \fBAWS_SECRET_ACCESS_KEY\fR, \fBAWS_SESSION_TOKEN\fR
What \fBexport\fR and \fBbench\fR sign their calls with.
.TP
\fBSSL_CERT_FILE\fR, \fBSSL_CERT_DIR\fR
Certificates to trust in place of the system's.
.SH FILES
.TP
\fI./stanchion.toml\fR, \fI/etc/stanchion/stanchion.toml\fR
Settings, accounts and queues: the first of them that exists.
.TP
\fI./stanchion\-data\fR
The data, unless \fB\-\-data\fR says otherwise; \fI/var/lib/stanchion\fR of the systemd unit.
.SH EXIT STATUS
.TP
0
It did what it was asked to.
.TP
1
It could not: a port, a disk, damaged data, a server that does not answer or is not ready.
.TP
2
The command line, the environment or the file of settings is wrong.
.TP
70
The journal could not be written; nothing that was acknowledged is lost.
.SH SEE ALSO
\fI/usr/share/doc/stanchion\fR: configuration.md, operations.md, compatibility.md
)";

}  // namespace

std::string to_manual(const ProgramText& program, std::string_view version) {
  std::string out = fmt::format(
      ".TH STANCHION 1 \"\" \"stanchion {}\" \"User Commands\"\n"
      ".SH NAME\nstanchion \\- Amazon SQS on your own machines\n"
      ".SH SYNOPSIS\n\\fBstanchion\\fR \\fICOMMAND\\fR [\\fIFLAGS\\fR]\n"
      ".SH DESCRIPTION\n"
      "A server that speaks the protocols of Amazon SQS, so that every AWS SDK, the AWS CLI and\n"
      "every SQS library works with it by pointing it at another endpoint. Messages are on disk\n"
      "before they are acknowledged.\n"
      ".PP\n\\fBstanchion serve\\fR starts it; it prints a line with which to try it.\n"
      ".SH COMMANDS\nEach takes \\fB\\-\\-help\\fR.\n",
      escape(version));
  for (const CommandText& command : program.commands) out += to_section(command);
  out += kEnding;
  return out;
}

}  // namespace stanchion::cli
