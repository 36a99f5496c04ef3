"""Lets `twistd --reactor=gustnado` find the reactor."""

from twisted.application.reactors import Reactor

gustnado = Reactor(
    "gustnado", "gustnado.twisted", "Gustnado's reactor, which serves HTTP natively."
)
gustnado_cyclone = Reactor(
    "gustnado-cyclone", "gustnado.twisted._cyclone_reactor",
    "The same, with some functions of Cyclone replaced by faster ones."
)
