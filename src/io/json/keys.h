// SPDX-License-Identifier: Apache-2.0
// The top-level request keys that the gateway reads. All others pass unseen.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/model/event.h"

namespace signalbox::json {

enum class Key : std::uint8_t {
  Model, Stream, StreamOptions, MaxTokens, MaxCompletionTokens, MaxOutputTokens, N, BestOf,
  Priority, CacheSalt, User, Metadata, PromptCacheKey, PreviousResponseId, Conversation,
  Tools, Functions, Stop, StopSequences, Logprobs, TopLogprobs, LogitBias, Messages, Prompt,
  PromptEmbeds, Input, Instructions, System, ChatTemplate, ChatTemplateKwargs, Documents,
  ReasoningEffort, ResponseFormat, Text, JsonSchema, GuidedJson, StructuredOutputs, OutputFormat,
  KvTransferParams, BootstrapHost, BootstrapPort, BootstrapRoom, DataParallelRank, RoutedDpRank,
  DisaggPrefillDpRank, DpRankOfDecode, DisaggregatedParams, Nvext, IdSlot, SlotId,
  EcTransferParams, VllmXargs, RequestId, Rid,
  None
};
inline constexpr std::size_t kKeyCount = static_cast<std::size_t>(Key::None);

// By these a body would say which rank or slot serves it, from where an engine fetches its cache,
// who goes first and under which name an engine knows it (and may be told to abort it): that is
// decided here, and no engine gets them from a client.
inline constexpr std::array kSteering = {
    Key::Priority,         Key::KvTransferParams, Key::BootstrapHost,
    Key::BootstrapPort,    Key::BootstrapRoom,    Key::DataParallelRank,
    Key::RoutedDpRank,     Key::DisaggPrefillDpRank, Key::IdSlot,
    Key::DpRankOfDecode,   Key::DisaggregatedParams, Key::Nvext,
    Key::SlotId,           Key::EcTransferParams,    Key::VllmXargs,
    Key::RequestId,        Key::Rid};

std::string_view name(Key key);
// The key of that name if the gateway reads it in requests of this API, else None.
Key find_key(model::Api api, std::string_view name);

}  // namespace signalbox::json
