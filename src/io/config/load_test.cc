// SPDX-License-Identifier: Apache-2.0
// Goal: good files load, wrong ones say exactly what is wrong and where. Method: the worked file of
// the documentation, a table of wrong files with their whole messages, files and secrets in a
// temporary folder with an environment of our own.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "core/spec/compile.h"
#include "io/config/load.h"

namespace signalbox::config {
namespace {

namespace fs = std::filesystem;

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "signalbox-config-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
  }

 private:
  std::string path_;
};

Options environment(std::map<std::string, std::string> values) {
  Options options;
  options.environment = [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  return options;
}

std::string resource(const std::string& kind, const std::string& name, const std::string& spec) {
  return "apiVersion: signalbox.dev/v1alpha1\nkind: " + kind + "\nmetadata:\n  name: " + name +
         "\nspec:\n" + spec;
}

std::string read(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Load, WorkedFileParsesAndCompiles) {
  Folder folder;
  const std::string docs = std::string(SIGNALBOX_SOURCE_DIR) + "/docs/example/signalbox.yaml";
  folder.write("signalbox.yaml", read(docs));
  folder.write("keys/admin.token", "admin-token\n");
  folder.write("keys/support.keys", "# the support desk\nsk-support-1\nsk-support-2\n");
  const auto loaded = load(folder.path("signalbox.yaml"),
                           environment({{"RENTED_API_KEY", "up-key"}, {"RESEARCH_KEY", "sk-r"}}));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const spec::Config& config = loaded->config;
  EXPECT_EQ(config.gateway.limits.body, Bytes{16 << 20});
  EXPECT_EQ(config.models.size(), 2u);
  EXPECT_EQ(config.pools.size(), 3u);
  EXPECT_EQ(loaded->secrets.tenants.size(), 4u);
  EXPECT_EQ(loaded->secrets.tenants.at(sha256("sk-support-2")), "support");
  EXPECT_EQ(loaded->secrets.upstream.at("qwen-rented").reveal(), "up-key");
  EXPECT_EQ(loaded->secrets.admin, sha256("admin-token"));
  EXPECT_EQ(loaded->files,
            (std::vector<std::string>{folder.path("signalbox.yaml"),
                                      folder.path("keys/admin.token"),
                                      folder.path("keys/support.keys")}));
  spec::Directory directory;
  const spec::Resolved resolved{
      {"vllm.llama.svc.cluster.local:8000", {"10.0.3.13:8000", "10.0.3.14:8000"}},
      {"inference.example.com:443", {"192.0.2.7:443"}}};
  const auto compiled = spec::compile(config, directory, resolved);
  EXPECT_TRUE(compiled.notes.empty());
  EXPECT_EQ(compiled.fleet.endpoints.size(), 4u + 8u + 1u);
  ASSERT_EQ(compiled.fleet.routes.size(), 3u);
  EXPECT_EQ(compiled.fleet.routes[0].name, "assistant");
  EXPECT_EQ(compiled.fleet.routes[0].tenants.size(), 2u);
  EXPECT_EQ(compiled.fleet.routes[2].name, "Qwen/Qwen3-30B-A3B");
}

RC_GTEST_PROP(Yaml, ReadsBackWhatTheConfigurationWrote, (std::uint64_t seed)) {
  Rng rng(seed, "config");
  const spec::Config config = spec::random(rng);
  spec::Report report;
  const auto documents = read_yaml("dump.yaml", spec::to_yaml(config), {}, report);
  const spec::Config again = spec::parse(documents, report);
  for (const auto& problem : report.problems()) RC_LOG() << spec::to_string(problem) << "\n";
  RC_ASSERT(report.clean());
  RC_ASSERT(again == config);
}

// Any text, quoted as to_yaml() does, is that text again.
RC_GTEST_PROP(Yaml, ReadsBackAnyText, (const std::vector<std::uint32_t>& points)) {
  std::string text;
  for (const std::uint32_t point : points) {
    const std::uint32_t c = point % 0xD7FF + 1;
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
    } else {
      text += {static_cast<char>(0xE0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 0x3F)),
               static_cast<char>(0x80 | (c & 0x3F))};
    }
  }
  spec::Node leaf;
  leaf.form = spec::Node::Form::Scalar;
  leaf.quoted = true;
  leaf.text = text;
  spec::Node root;
  root.form = spec::Node::Form::Sequence;
  root.items = {leaf, leaf};
  spec::Report report;
  const auto documents = read_yaml("t", spec::to_yaml(root), {}, report);
  RC_ASSERT(report.clean());
  RC_ASSERT(documents.at(0).root.items.at(1).text == text);
  RC_ASSERT(documents.at(0).root.items.at(1).quoted || !spec::is_typed_scalar(text));
}

TEST(Load, ReadsADirectoryInTheOrderOfNames) {
  Folder folder;
  folder.write("20-b.yml", resource("Model", "b", "  params_b: 7\n"));
  folder.write("10-a.yaml", resource("Model", "a", "  params_b: 8\n"));
  folder.write("notes.txt", "nothing: [");
  folder.write(".hidden.yaml", "nothing: [");
  folder.write("inner/c.yaml", "nothing: [");
  const auto loaded = load(folder.path());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->files,
            (std::vector<std::string>{folder.path("10-a.yaml"), folder.path("20-b.yml")}));
  EXPECT_EQ(loaded->config.models.size(), 2u);
  folder.write("30-c.yaml", resource("Model", "a", "  params_b: 8\n"));
  const auto twice = load(folder.path());
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message,
            folder.path("30-c.yaml") + ":1:1: there is a Model `a` already, at " +
                folder.path("10-a.yaml") + ":1; rename or remove one.");
}

TEST(Load, SaysWhichFileCannotBeRead) {
  Folder folder;
  EXPECT_EQ(load(folder.path("none.yaml")).error().message,
            folder.path("none.yaml") + ": cannot be opened: No such file or directory.");
  EXPECT_EQ(load(folder.path()).error().message,
            folder.path() + ": has no *.yaml or *.yml file.");
  EXPECT_EQ(load("/dev/null").error().message, "/dev/null: is no regular file.");
  folder.write("big.yaml", std::string(2000, '#'));
  Options options;
  options.yaml.bytes_max = 1000;
  EXPECT_EQ(load(folder.path("big.yaml"), options).error().message,
            folder.path("big.yaml") + ": is larger than 1000 bytes.");
}

const std::string kTenant = resource("Tenant", "t", "  keys:\n    - env: T_KEY\n");

TEST(Secrets, MissingOnesStandWhereTheyArePointedTo) {
  const std::string at = "c.yaml:7:7: Tenant/t.spec.keys[0]: ";
  const auto message = [](std::map<std::string, std::string> values) {
    return load_text("c.yaml", kTenant, ".", environment(std::move(values))).error().message;
  };
  EXPECT_EQ(message({}),
            at + "the environment variable `T_KEY` is not set; set it before the start, or use"
                 " {file: PATH}.");
  EXPECT_EQ(message({{"T_KEY", " "}}),
            at + "the environment variable `T_KEY` is empty; set it before the start, or use"
                 " {file: PATH}.");
  EXPECT_EQ(message({{"T_KEY", "two words"}}),
            at + "holds no key: a key is one word of visible ASCII characters.");
  EXPECT_EQ(message({{"T_KEY", "sha256:12"}}),
            at + "`sha256:` is followed by something other than 64 hexadecimal digits.");
  const std::string file = resource("Tenant", "t", "  keys: [{file: none.keys}]\n");
  EXPECT_EQ(load_text("c.yaml", file, "/nowhere", environment({})).error().message,
            "c.yaml:6:10: Tenant/t.spec.keys[0]: the file `/nowhere/none.keys` cannot be opened: No"
            " such file or directory.");
}

TEST(Secrets, AKeyBelongsToOneTenantHoweverItIsWritten) {
  const std::string other = "---\n" + resource("Tenant", "u", "  keys:\n    - env: U_KEY\n");
  const auto loaded = load_text("c.yaml", kTenant + other, ".",
                                environment({{"T_KEY", "same"}, {"U_KEY", "same"}}));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message,
            "c.yaml:15:7: Tenant/u.spec.keys[0]: holds a key of Tenant `t` too; a key belongs to"
            " one tenant.");
}

TEST(Secrets, AppearInNoDumpAndNoError) {
  const std::string canary = "sk-canary-0123456789";
  const auto loaded = load_text("c.yaml", kTenant, ".", environment({{"T_KEY", canary}}));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(spec::to_yaml(loaded->config).find(canary), std::string::npos);
  // Written by mistake into every place that takes a secret.
  const std::string model = "---\n" + resource("Model", "m", "  params_b: 1\n");
  for (const std::string& wrong :
       {resource("Tenant", "t", "  keys: [" + canary + "]\n"),
        resource("Tenant", "t", "  keys: " + canary + "\n"),
        resource("Tenant", "t", "  keys: [{env: " + canary + "}]\n"),
        resource("Tenant", "t", "  keys: [{" + canary + ": x}]\n"),
        resource("Tenant", "t", "  keys: [sha256:" + canary + "]\n"),
        resource("Gateway", "g", "  admin: {token: " + canary + "}\n"),
        resource("Pool", "p", "  model: m\n  endpoints: [\"http://u:" + canary + "@h\"]\n") + model,
        resource("Pool", "p", "  model: m\n  endpoints: [http://h]\n  api_key: " + canary + "\n") +
            model}) {
    const auto result = load_text("c.yaml", wrong, ".", environment({}));
    ASSERT_FALSE(result) << wrong;
    EXPECT_EQ(result.error().message.find("canary"), std::string::npos) << result.error().message;
  }
}

TEST(Secrets, ThatChangedAreNamedInTheDifference) {
  const std::string text =
      kTenant + "---\n" + resource("Model", "m", "  params_b: 1\n") + "---\n" +
      resource("Pool", "p", "  model: m\n  endpoints: [http://h]\n  api_key: {env: UP}\n");
  const auto with = [&](std::string tenant, std::string upstream) {
    auto loaded = load_text(
        "c.yaml", text, ".",
        environment({{"T_KEY", std::move(tenant)}, {"UP", std::move(upstream)}}));
    return std::move(loaded).value();
  };
  EXPECT_EQ(diff(with("a", "x"), with("a", "x")), std::vector<std::string>{});
  EXPECT_EQ(diff(with("a", "x"), with("b", "y")),
            (std::vector<std::string>{"Tenant/t.spec.keys: other keys",
                                      "Pool/p.spec.api_key: another key"}));
}

TEST(Secret, GivesItsTextToRevealAlone) {
  Secret a("up");
  Secret b = a;
  Secret c = std::move(a);
  EXPECT_EQ(b.reveal(), "up");
  EXPECT_EQ(c.reveal(), "up");
  EXPECT_TRUE(a.empty());  // NOLINT: the state after a move is part of the contract
  c = b;
  EXPECT_EQ(c.reveal(), "up");
}

TEST(Load, WaitsForNoFifo) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder.path() + "/a.yaml").c_str(), 0600), 0);
  const auto loaded = load(folder.path());
  ASSERT_FALSE(loaded.has_value());
  EXPECT_NE(loaded.error().message.find("is no regular file"), std::string::npos)
      << loaded.error().message;
}

TEST(Load, AnInspectorsProblemsStandAtTheirPlaces) {
  const Folder folder;
  folder.write("a.yaml", "apiVersion: signalbox.dev/v1alpha1\nkind: Pool\nmetadata: {name: p}\n"
                         "spec:\n  model: m\n  endpoints: [http://127.0.0.1:1]\n---\n"
                         "apiVersion: signalbox.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\n"
                         "spec: {}\n");
  Options options;
  options.inspect = [](const Loaded& loaded, spec::Report& report) {
    report.add("Pool/" + loaded.config.pools[0].name + ".spec.model", "displeases.");
  };
  const auto loaded = load(folder.path(), options);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_NE(loaded.error().message.find("a.yaml:5:"), std::string::npos) << loaded.error().message;
  options.secrets = false;
  EXPECT_TRUE(load(folder.path(), options).has_value());
}

TEST(Sha256, AgreesWithTheStandard) {
  const auto abc =
      parse_sha256("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  ASSERT_TRUE(abc);
  EXPECT_EQ(sha256("abc"), *abc);
  EXPECT_FALSE(parse_sha256("BA7816"));
}

TEST(Yaml, LimitsDepthAndNodes) {
  spec::Report report;
  YamlLimits limits;
  limits.depth_max = 3;
  read_yaml("t", "a: {b: {c: 1}}", limits, report);
  EXPECT_TRUE(report.clean());
  read_yaml("t", "a: {b: {c: {d: 1}}}", limits, report);
  ASSERT_FALSE(report.clean());
  EXPECT_EQ(report.error().message, "t:1:12: is nested deeper than 3 levels.");
  spec::Report many;
  limits.nodes_max = 10;
  read_yaml("t", "[1,2,3,4,5,6,7,8,9,10]", limits, many);
  ASSERT_FALSE(many.clean());
  spec::Report deep;
  read_yaml("t", std::string(100'000, '['), {}, deep);
  EXPECT_FALSE(deep.clean());
}

TEST(Yaml, TakesTextsThatEndWithTheFile) {
  const std::pair<const char*, const char*> cases[] = {
      {"a: 'it''s'", "it's"},
      {"a: \"x\\\"\"", "x\""},
      {"a: \"\xC3\xA9\"\r\n", "\xC3\xA9"},
      {"a: ''\n", ""},
      {"a: |\n  it's\n", "it's\n"},
      {"a: >\n", ""},
  };
  for (const auto& [text, value] : cases) {
    spec::Report report;
    const auto documents = read_yaml("t", text, {}, report);
    ASSERT_TRUE(report.clean()) << report.error().message;
    EXPECT_EQ(documents.at(0).root.items.at(0).text, value) << text;
  }
}

TEST(Yaml, SkipsEmptyDocuments) {
  EXPECT_TRUE(load_text("t", ""));
  EXPECT_TRUE(load_text("t", "---\n---\n# nothing\n---\n"));
  EXPECT_TRUE(load_text("t", "\xEF\xBB\xBF" + resource("Model", "m", "  params_b: 1\n")));
}

}  // namespace
}  // namespace signalbox::config
