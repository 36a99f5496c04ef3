"""Puts `wsgiref.validate` around whatever application by WSGI a server of this package is given.
Every interpreter imports this that finds it on its path."""

import sys
from importlib import abc, machinery
from wsgiref.validate import validator


class Finder(abc.MetaPathFinder):
    """Has `gustnado._process` changed once it has been imported."""

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
