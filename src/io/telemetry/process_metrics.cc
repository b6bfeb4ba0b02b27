// SPDX-License-Identifier: Apache-2.0
// Fields of /proc/self/stat are counted behind the last parenthesis: the command may hold anything.
#include "io/telemetry/process_metrics.h"

#include <dirent.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace signalbox::telemetry {
namespace {

std::string slurp(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Fields of /proc/self/stat from the third on, as numbers; the state letter reads as 0.
std::vector<double> stat_fields() {
  std::string text = slurp("/proc/self/stat");
  std::vector<double> fields;
  std::size_t end = text.rfind(')');
  if (end == std::string::npos) return fields;
  std::istringstream in(text.substr(end + 1));
  for (std::string word; in >> word;) fields.push_back(std::strtod(word.c_str(), nullptr));
  return fields;
}

double boot_time() {
  std::string text = slurp("/proc/stat");
  std::size_t at = text.find("\nbtime ");
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + 7, nullptr);
}

double open_files() {
  DIR* dir = opendir("/proc/self/fd");
  if (dir == nullptr) return 0;
  int count = -3;  // `.`, `..` and the directory itself
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

void collect(TextWriter& writer) {
  std::vector<double> stat = stat_fields();
  if (stat.size() < 22) return;
  double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  double page = static_cast<double>(sysconf(_SC_PAGESIZE));
  auto one = [&](std::string_view name, MetricType type, std::string_view help, double value) {
    writer.family(name, type, help);
    writer.sample({}, value);
  };
  one("process_cpu_seconds_total", MetricType::Counter, "CPU time, user and system.",
      (stat[11] + stat[12]) / ticks);
  one("process_start_time_seconds", MetricType::Gauge, "Start of the process, unix time.",
      boot_time() + stat[19] / ticks);
  one("process_virtual_memory_bytes", MetricType::Gauge, "Virtual memory.", stat[20]);
  one("process_resident_memory_bytes", MetricType::Gauge, "Resident memory.", stat[21] * page);
  one("process_threads", MetricType::Gauge, "Threads.", stat[17]);
  one("process_open_fds", MetricType::Gauge, "Open file descriptors.", open_files());
}

}  // namespace

void add_process_metrics(Registry& registry) { registry.collector(collect); }

}  // namespace signalbox::telemetry
