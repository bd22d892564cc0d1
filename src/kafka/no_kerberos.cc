// librdkafka calls Cyrus SASL for one mechanism only, Kerberos (GSSAPI). Its static library brings
// LDAP, SQL and Kerberos clients along, and its shared library would be one more thing that the
// program needs to run. So Kerberos is refused (check_security), and these are the functions to
// which librdkafka refers: they find no mechanism.
extern "C" {

namespace {
constexpr int kOk = 0;
constexpr int kNoMechanism = -4;
}  // namespace

int sasl_client_init(const void*);
int sasl_client_new(const char*, const char*, const char*, const char*, const void*, unsigned,
                    void**);
int sasl_client_start(void*, const char*, void**, const char**, unsigned*, const char**);
int sasl_client_step(void*, const char*, unsigned, void**, const char**, unsigned*);
void sasl_dispose(void**);
const char* sasl_errdetail(void*);
const char* sasl_errstring(int, const char*, const char**);
int sasl_getprop(void*, int, const void**);
int sasl_listmech(void*, const char*, const char*, const char*, const char*, const char**,
                  unsigned*, int*);

int sasl_client_init(const void*) {
  return kOk;
}

int sasl_client_new(const char*, const char*, const char*, const char*, const void*, unsigned,
                    void**) {
  return kNoMechanism;
}

int sasl_client_start(void*, const char*, void**, const char**, unsigned*, const char**) {
  return kNoMechanism;
}

int sasl_client_step(void*, const char*, unsigned, void**, const char**, unsigned*) {
  return kNoMechanism;
}

void sasl_dispose(void**) {}

const char* sasl_errdetail(void*) {
  return "Kerberos is not supported";
}

const char* sasl_errstring(int, const char*, const char**) {
  return "Kerberos is not supported";
}

int sasl_getprop(void*, int, const void**) {
  return kNoMechanism;
}

int sasl_listmech(void*, const char*, const char*, const char*, const char*, const char**,
                  unsigned*, int*) {
  return kNoMechanism;
}
}
