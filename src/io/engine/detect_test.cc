// SPDX-License-Identifier: Apache-2.0
// Goal: every engine is told apart from its own answers, in as few GETs as can be. Method: a table
// of answers per engine, recorded where a recording exists.
#include "io/engine/detect.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "io/engine/recorded_for_test.inc"

namespace signalbox::engine {
namespace {

using model::EngineKind;

struct Reply {
  int status = 404;
  std::string server;
  std::string body;
};
using Server = std::map<std::string, Reply, std::less<>>;

// Asks until the detector concludes; `asked` receives the paths in order.
Discovery probe(const Server& server, EngineKind declared, std::vector<std::string>& asked) {
  Detector detector(declared);
  while (!detector.next().empty()) {
    asked.emplace_back(detector.next());
    EXPECT_LE(asked.size(), 4u);
    auto found = server.find(asked.back());
    Reply reply = found == server.end() ? Reply{} : found->second;
    detector.feed({reply.status, reply.server, reply.body});
  }
  return detector.result();
}

Discovery probe(const Server& server) {
  std::vector<std::string> asked;
  return probe(server, EngineKind::Auto, asked);
}

TEST(Detect, FindsVllmInOneGet) {
  std::vector<std::string> asked;
  Discovery got = probe({{"/v1/models", {200, "uvicorn", std::string(kVllmModels)}}},
                        EngineKind::Auto, asked);
  EXPECT_EQ(got.kind, EngineKind::Vllm);
  ASSERT_EQ(got.facts.models.size(), 2u);
  EXPECT_EQ(got.facts.models[1].id, "tiny-alias");
  EXPECT_EQ(asked.size(), 1u);
}

TEST(Detect, FindsLlamaCppAndItsSizesInTwoGets) {
  std::vector<std::string> asked;
  Discovery got = probe({{"/v1/models", {200, "llama.cpp", llamacpp_body("GET /v1/models")}},
                         {"/props", {200, "llama.cpp", llamacpp_body("GET /props")}}},
                        EngineKind::Auto, asked);
  EXPECT_EQ(got.kind, EngineKind::LlamaCpp);
  EXPECT_EQ(got.facts.models.size(), 1u);
  EXPECT_EQ(got.facts.slots, 4);
  EXPECT_EQ(got.facts.kv_capacity_tokens, 8192);
  EXPECT_EQ(asked, (std::vector<std::string>{"/v1/models", "/props"}));
}

TEST(Detect, FindsSglangByNewAndOldServerInfo) {
  constexpr const char* kModels = R"({"data":[{"id":"m","owned_by":"sglang","max_model_len":99}]})";
  constexpr const char* kInfo = R"({"max_total_num_tokens":1000,"max_running_requests":16})";
  for (const char* path : {"/server_info", "/get_server_info"}) {
    Discovery got = probe({{"/v1/models", {200, "uvicorn", kModels}}, {path, {200, "", kInfo}}});
    EXPECT_EQ(got.kind, EngineKind::Sglang);
    EXPECT_EQ(got.facts.kv_capacity_tokens, 1000) << path;
    EXPECT_EQ(got.facts.slots, 16);
    EXPECT_EQ(got.facts.models[0].context_tokens, 99);
  }
}

TEST(Detect, FindsTrtLlmByOwnerOrByIterations) {
  Discovery owner = probe({{"/v1/models", {200, "uvicorn",
                           R"({"data":[{"id":"m","owned_by":"tensorrt_llm"}]})"}}});
  EXPECT_EQ(owner.kind, EngineKind::TrtLlm);
  Discovery list = probe({{"/v1/models", {200, "uvicorn", R"({"data":[{"id":"m"}]})"}},
                          {"/metrics", {200, "", "[]"}}});
  EXPECT_EQ(list.kind, EngineKind::TrtLlm);
}

TEST(Detect, TellsStrangersByTheirMetrics) {
  Discovery got = probe({{"/v1/models", {200, "nginx", R"({"data":[{"id":"m"}]})"}},
                         {"/metrics", {200, "nginx", recorded_file("vllm-0.32-metrics.txt")}}});
  EXPECT_EQ(got.kind, EngineKind::Vllm);
}

TEST(Detect, TakesAnythingElseForAnOpenAiServer) {
  constexpr const char* kModels = R"({"data":[{"id":"gpt","owned_by":"openai"}]})";
  Discovery got = probe({{"/v1/models", {200, "", kModels}}});
  EXPECT_EQ(got.kind, EngineKind::OpenAi);
  EXPECT_EQ(got.facts.models.size(), 1u);
  Discovery nothing = probe({});
  EXPECT_EQ(nothing.kind, EngineKind::OpenAi);
  EXPECT_TRUE(nothing.facts.models.empty());
  EXPECT_TRUE(nothing.ready);
}

TEST(Detect, KnowsAnEngineThatIsStillLoading) {
  constexpr const char* kLoading =
      R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})";
  Discovery got = probe({{"/v1/models", {503, "llama.cpp", kLoading}}});
  EXPECT_EQ(got.kind, EngineKind::LlamaCpp);
  EXPECT_FALSE(got.ready);
}

TEST(Detect, SaysThatAKeyIsNeeded) {
  Discovery got = probe({{"/v1/models", {401, "uvicorn", "{}"}},
                         {"/metrics", {200, "uvicorn", recorded_file("vllm-0.32-metrics.txt")}}});
  EXPECT_EQ(got.kind, EngineKind::Vllm);
  EXPECT_TRUE(got.needs_key);
}

TEST(Detect, BelievesADeclarationAndNotesWhatContradictsIt) {
  std::vector<std::string> asked;
  Discovery got = probe({{"/v1/models", {200, "llama.cpp", llamacpp_body("GET /v1/models")}}},
                        EngineKind::Vllm, asked);
  EXPECT_EQ(got.kind, EngineKind::Vllm);
  EXPECT_NE(got.note.find("llama"), std::string::npos);
  EXPECT_EQ(asked.size(), 1u);
  asked.clear();
  Discovery quiet = probe({{"/v1/models", {200, "uvicorn", std::string(kVllmModels)}}},
                          EngineKind::OpenAi, asked);
  EXPECT_EQ(quiet.kind, EngineKind::OpenAi);
  EXPECT_TRUE(quiet.note.empty());
}

TEST(Detect, NotesAModelListThatIsNone) {
  Discovery got = probe({{"/v1/models", {200, "", "<html>"}}});
  EXPECT_EQ(got.kind, EngineKind::OpenAi);
  EXPECT_NE(got.note.find("/v1/models"), std::string::npos);
}

}  // namespace
}  // namespace signalbox::engine
