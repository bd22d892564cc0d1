// Boost.JSON is header-only here: its definitions live in this file and nowhere else.
#include <boost/json/src.hpp>
