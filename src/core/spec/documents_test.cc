// SPDX-License-Identifier: Apache-2.0
// Goal: the reference pages say what the code declares. Method: compares the generated texts with
// the files; SIGNALBOX_UPDATE_DOCS=1 writes the files instead.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "core/spec/schema.h"

namespace signalbox::spec {
namespace {

void expect_fresh(const std::string& file, const std::string& generated) {
  const std::string path = std::string(SIGNALBOX_SOURCE_DIR) + "/docs/reference/" + file;
  if (std::getenv("SIGNALBOX_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << generated;
    return;
  }
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  EXPECT_TRUE(text.str() == generated)
      << path << " is stale: run SIGNALBOX_UPDATE_DOCS=1 core_spec_test and commit it.";
}

TEST(Documents, SettingsPageIsFresh) { expect_fresh("settings.md", settings_markdown()); }
TEST(Documents, JsonSchemaIsFresh) { expect_fresh("schema.json", json_schema()); }

void expect_described(const std::vector<Field>& fields, const std::string& path) {
  for (const Field& field : fields) {
    const std::string here = path + "." + field.name;
    EXPECT_TRUE(field.meaning.ends_with('.')) << here;
    EXPECT_EQ(field.meaning.find_first_of("\n|\""), std::string::npos) << here;
    const auto form = field.type.form;
    if (form == TypeInfo::Form::Integer || form == TypeInfo::Form::Number) {
      EXPECT_FALSE(field.range.empty()) << here << " has no limit";
    }
    expect_described(field.type.fields, here);
    if (!field.type.item.empty()) expect_described(field.type.item[0].fields, here + "[]");
  }
}

TEST(Documents, EverySettingHasAMeaningAndEveryNumberALimit) {
  for (const KindInfo& kind : kinds()) expect_described(kind.fields, std::string(name(kind.kind)));
}

}  // namespace
}  // namespace signalbox::spec
