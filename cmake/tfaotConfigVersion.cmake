# What find_package(tfaot VERSION) asks: this version serves projects that ask for it or for an earlier one with the same first two
# numbers.
set(PACKAGE_VERSION 0.1.0)
set(PACKAGE_VERSION_COMPATIBLE FALSE)
set(PACKAGE_VERSION_EXACT FALSE)
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
string(REGEX MATCH "^[0-9]+\\.[0-9]+" _tfaot_series "${PACKAGE_VERSION}")
set(_tfaot_asked "${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}")
if(_tfaot_asked VERSION_EQUAL _tfaot_series AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
