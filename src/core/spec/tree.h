// SPDX-License-Identifier: Apache-2.0
// Configuration text as a tree, whatever its syntax: each node knows where it stands. Filled by
// io/config from YAML; read by parse(), written by to_tree(). Values only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace signalbox::spec {

struct Node {
  enum class Form : std::uint8_t {
    Null,      // nothing was written, or `null`
    Scalar,    // `text`
    Sequence,  // `items`
    Mapping,   // `items`, each with its `key`; equal keys stay side by side
  };
  Form form = Form::Null;
  bool quoted = false;     // the scalar was written in quotes, so it is text and no number
  int line = 0;            // of the value, from 1; 0: made by us
  int column = 0;          // from 1, in characters
  std::string key;         // when the parent is a mapping
  int key_line = 0;
  int key_column = 0;
  std::string text;
  std::vector<Node> items;
};

struct Document {
  std::string file;  // as errors show it
  Node root;
};

// Block YAML, one document. Text is put in quotes wherever a YAML reader could take it for
// something else; reading it back gives the same tree but for positions.
std::string to_yaml(const Node& root);

// True when a plain scalar reads as null, true, false or a number, so that text must be quoted.
bool is_typed_scalar(const std::string& text);

}  // namespace signalbox::spec
