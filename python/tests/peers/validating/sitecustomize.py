"""Puts `wsgiref.validate` around whatever application by WSGI a server of this package is given.
Every interpreter imports this that finds it on its path."""

import sys
from importlib import abc, machinery
from wsgiref import validate
from wsgiref.validate import InputWrapper, validator

# The server is to be judged, not the applications of the tests: they read without a size, and
# leave Content-Type out.
validate.check_content_type = lambda status, headers: None
read_so_many = InputWrapper.read
InputWrapper.read = lambda self, size=-1: read_so_many(self, size)


class Finder(abc.MetaPathFinder):
    """Changes `gustnado._process` once it has been imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "gustnado._process":
            return None
        spec = machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            wsgi = module.Wsgi
            module.Wsgi = lambda app, *rest: wsgi(validator(app), *rest)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, Finder())
