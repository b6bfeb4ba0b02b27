// SPDX-License-Identifier: Apache-2.0
// What is made of written trees: the canonical dump and the difference of two configurations.
#include <algorithm>
#include <map>

#include "core/spec/config.h"
#include "core/spec/field_writer.h"

namespace signalbox::spec {

Node scalar_node(std::string text, bool quoted) {
  Node node;
  node.form = Node::Form::Scalar;
  node.quoted = quoted;
  node.text = std::move(text);
  return node;
}

Node empty_node(Node::Form form) {
  Node node;
  node.form = form;
  return node;
}

Node write_source(const SecretSource& source) {
  if (source.from == SecretSource::From::Hash) return scalar_node("sha256:" + source.where, true);
  Node node = empty_node(Node::Form::Mapping);
  node.items.push_back(scalar_node(source.where, true));
  node.items.back().key = source.from == SecretSource::From::Env ? "env" : "file";
  return node;
}

namespace {

template <typename Resource>
Document resource_document(Kind kind, const Resource& resource) {
  Document document;
  Node& root = document.root;
  root = empty_node(Node::Form::Mapping);
  const auto put = [](Node& block, std::string_view key, Node node) {
    node.key = key;
    block.items.push_back(std::move(node));
  };
  Node metadata = empty_node(Node::Form::Mapping);
  put(metadata, "name", scalar_node(resource.name, true));
  put(root, "apiVersion", scalar_node(std::string(kApiVersion), true));
  put(root, "kind", scalar_node(std::string(name(kind)), true));
  put(root, "metadata", std::move(metadata));
  Resource copy = resource;
  put(root, "spec", write(copy));
  return document;
}

template <typename Resource>
void append(Kind kind, const std::vector<Resource>& list, std::vector<Document>& out) {
  for (const Resource& resource : list) out.push_back(resource_document(kind, resource));
}

// --- differences -------------------------------------------------------------------------------

std::string one_line(const Node& node) {
  if (node.form == Node::Form::Scalar) return node.text;
  const bool mapping = node.form == Node::Form::Mapping;
  std::string text(mapping ? "{" : "[");
  for (const Node& item : node.items) {
    if (text.size() > 1) text += ", ";
    text += (mapping ? item.key + ": " : "") + one_line(item);
  }
  return text + (mapping ? "}" : "]");
}

const Node* child(const Node& block, std::string_view key) {
  for (const Node& item : block.items) {
    if (item.key == key) return &item;
  }
  return nullptr;
}

// Items as texts: what is only in one list was added or removed, else the order changed.
void diff_lists(const std::string& path, const Node& before, const Node& after,
                std::vector<std::string>& out) {
  std::multimap<std::string, bool> left;
  std::vector<std::string> olds, news;
  for (const Node& item : before.items) olds.push_back(one_line(item));
  for (const Node& item : after.items) news.push_back(one_line(item));
  if (olds == news) return;
  std::vector<std::string> old_sorted = olds, new_sorted = news, gone, come;
  std::sort(old_sorted.begin(), old_sorted.end());
  std::sort(new_sorted.begin(), new_sorted.end());
  std::set_difference(old_sorted.begin(), old_sorted.end(), new_sorted.begin(), new_sorted.end(),
                      std::back_inserter(gone));
  std::set_difference(new_sorted.begin(), new_sorted.end(), old_sorted.begin(), old_sorted.end(),
                      std::back_inserter(come));
  for (const std::string& text : gone) out.push_back(path + ": removed " + text);
  for (const std::string& text : come) out.push_back(path + ": added " + text);
  if (gone.empty() && come.empty()) out.push_back(path + ": new order " + one_line(after));
}

void diff_nodes(const std::string& path, const Node* before, const Node* after,
                std::vector<std::string>& out) {
  const Node nothing = empty_node(Node::Form::Null);
  const Node& a = before != nullptr ? *before : nothing;
  const Node& b = after != nullptr ? *after : nothing;
  const auto is = [&](Node::Form form) {
    return (a.form == form || a.form == Node::Form::Null) &&
           (b.form == form || b.form == Node::Form::Null);
  };
  if (is(Node::Form::Sequence)) return diff_lists(path, a, b, out);
  if (is(Node::Form::Mapping)) {
    for (const Node& item : a.items) {
      diff_nodes(path + "." + item.key, &item, child(b, item.key), out);
    }
    for (const Node& item : b.items) {
      if (child(a, item.key) == nullptr) diff_nodes(path + "." + item.key, nullptr, &item, out);
    }
    return;
  }
  const std::string was = before != nullptr ? one_line(a) : "unset";
  const std::string is_now = after != nullptr ? one_line(b) : "unset";
  if (was != is_now) out.push_back(path + ": " + was + " -> " + is_now);
}

std::string resource_path(const Document& document) {
  const Node* metadata = child(document.root, "metadata");
  return child(document.root, "kind")->text + "/" + child(*metadata, "name")->text;
}

}  // namespace

std::vector<Document> to_documents(const Config& config) {
  std::vector<Document> out;
  out.push_back(resource_document(Kind::Gateway, config.gateway));
  append(Kind::Model, config.models, out);
  append(Kind::Pool, config.pools, out);
  append(Kind::Tenant, config.tenants, out);
  append(Kind::Objective, config.objectives, out);
  append(Kind::Route, config.routes, out);
  return out;
}

std::string to_yaml(const Config& config) {
  std::string text;
  for (const Document& document : to_documents(config)) {
    text += (text.empty() ? "" : "---\n") + to_yaml(document.root);
  }
  return text;
}

std::vector<std::string> diff(const Config& before, const Config& after) {
  std::vector<std::string> out;
  std::map<std::string, const Node*> old_specs;
  const auto old_documents = to_documents(before);
  const auto new_documents = to_documents(after);
  for (const Document& document : old_documents) {
    old_specs.emplace(resource_path(document), child(document.root, "spec"));
  }
  std::map<std::string, const Node*> new_specs;
  for (const Document& document : new_documents) {
    new_specs.emplace(resource_path(document), child(document.root, "spec"));
  }
  for (const auto& [path, spec] : old_specs) {
    if (!new_specs.contains(path)) out.push_back(path + ": removed");
  }
  for (const auto& [path, spec] : new_specs) {
    const auto old = old_specs.find(path);
    if (old == old_specs.end()) {
      out.push_back(path + ": added");
    } else {
      diff_nodes(path + ".spec", old->second, spec, out);
    }
  }
  return out;
}

}  // namespace signalbox::spec
