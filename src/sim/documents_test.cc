// SPDX-License-Identifier: Apache-2.0
// Goal: the reference page of scenarios says what the code declares. Method: compares the generated
// text with the file; SIGNALBOX_UPDATE_DOCS=1 writes the file instead.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "core/spec/field_lister.h"
#include "sim/scenario_form.h"

namespace signalbox::sim {
namespace {

TEST(Documents, ScenarioPageIsFresh) {
  const std::string path = std::string(SIGNALBOX_SOURCE_DIR) + "/docs/reference/scenario.md";
  if (std::getenv("SIGNALBOX_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << scenario_markdown();
    return;
  }
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  EXPECT_TRUE(text.str() == scenario_markdown())
      << path << " is stale: run SIGNALBOX_UPDATE_DOCS=1 sim_test and commit it.";
}

void expect_described(const std::vector<spec::Field>& fields, const std::string& path) {
  using Form = spec::TypeInfo::Form;
  for (const spec::Field& field : fields) {
    const std::string here = path + "." + field.name;
    EXPECT_TRUE(field.meaning.ends_with('.')) << here;
    EXPECT_EQ(field.meaning.find_first_of("\n|\""), std::string::npos) << here;
    if (field.type.form == Form::Integer || field.type.form == Form::Number) {
      EXPECT_FALSE(field.range.empty()) << here << " has no limit";
    }
    expect_described(field.type.fields, here);
    if (!field.type.item.empty()) expect_described(field.type.item[0].fields, here + "[]");
  }
}

TEST(Documents, EverySettingOfAScenarioHasAMeaningAndEveryNumberALimit) {
  expect_described(spec::fields_of<ScenarioForm>(), "");
}

TEST(Documents, EveryMetricHasAMeaningAndAName) {
  for (const Metric& metric : metrics()) {
    EXPECT_TRUE(metric.meaning.ends_with('.')) << metric.name;
    EXPECT_TRUE(metric.of) << metric.name;
    EXPECT_EQ(*find_metric(metric.name), &metric) << "two are called " << metric.name;
  }
}

}  // namespace
}  // namespace signalbox::sim
