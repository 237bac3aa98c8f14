#include "kube/server_address.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

struct Accepted {
  const char* url;
  bool https;
  const char* host;
  int port;
  const char* library_uri;
  const char* host_header;
};

TEST(ServerAddress, TakesUrlsApart) {
  for (const auto& expected : {
           Accepted{"https://10.0.0.1:6443", true, "10.0.0.1", 6443, "https://10.0.0.1:6443", ""},
           Accepted{"https://api.example.com", true, "api.example.com", 443,
                    "https://api.example.com:443", ""},
           Accepted{"http://localhost:8001/", false, "localhost", 8001, "http://localhost:8001",
                    ""},
           Accepted{"https://rancher/k8s/c-1/", true, "rancher", 443, "https://rancher:443/k8s/c-1",
                    ""},
           Accepted{"https://[fd00::1]:6443", true, "fd00::1", 6443, "https://fd00::1:6443",
                    "[fd00::1]:6443"},
           Accepted{"https://[::1]", true, "::1", 443, "https://::1:443", "[::1]:443"},
       }) {
    const auto address = ParseServerAddress(expected.url);
    ASSERT_TRUE(address.ok()) << expected.url;
    EXPECT_EQ(address->https, expected.https) << expected.url;
    EXPECT_EQ(address->host, expected.host) << expected.url;
    EXPECT_EQ(address->port, expected.port) << expected.url;
    EXPECT_EQ(address->library_uri, expected.library_uri) << expected.url;
    EXPECT_EQ(address->host_header, expected.host_header) << expected.url;
  }
}

TEST(ServerAddress, SaysWhatIsWrong) {
  for (const auto& [url, why] : {
           std::pair{"10.0.0.1:6443", "starts neither"},
           std::pair{"ftp://x", "starts neither"},
           std::pair{"https://", "host is empty"},
           std::pair{"https://:6443", "host is empty"},
           std::pair{"https://h:0", "1 to 65535"},
           std::pair{"https://h:65536", "1 to 65535"},
           std::pair{"https://h:64x", "no number"},
           std::pair{"https://h:", "no number"},
           std::pair{"https://fd00::1:6443", "brackets"},
           std::pair{"https://[fd00::1", "] is missing"},
           std::pair{"https://[fd00::1]x", "only a port"},
           std::pair{"https://me:secret@h", "user names"},
           std::pair{"https://h?x=1", "queries"},
       }) {
    const auto address = ParseServerAddress(url);
    ASSERT_FALSE(address.ok()) << url;
    EXPECT_EQ(address.error().code, base::ErrorCode::kInvalidArgument);
    EXPECT_NE(address.error().message.find(why), std::string::npos) << address.error().message;
  }
}

}  // namespace
}  // namespace kube
