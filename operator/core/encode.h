#pragma once

#include <set>
#include <string>

#include "core/json.h"
#include "core/model.h"

namespace core {

// The object `status` as it stands in the API. Zero counts are left out, as v1 does. With
// `own_fields` false only what the v1 CRD of training-operator knows.
Json EncodeStatus(const JobStatus& status, bool own_fields);

// RFC 7386: a merge patch that turns `from` into `to`; an empty object when they are equal.
Json MergePatch(const Json& from, const Json& to);

// Index sets as batch/v1's Job writes them: "0-2,4". Parsing ignores what is malformed or not below
// `limit`.
std::string FormatIndexes(const std::set<int>& indexes);
std::set<int> ParseIndexes(const std::string& text, int limit);

}  // namespace core
