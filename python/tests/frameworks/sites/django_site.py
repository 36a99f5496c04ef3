"""The ten requests on Django, by WSGI (`wsgi`) and ASGI (`asgi`), and its admin: log in, add a
user, see it in the list. Each process has a database of its own."""

import re
import tempfile
import zlib

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, HttpResponseRedirect, JsonResponse, StreamingHttpResponse
from django.urls import path

folder = tempfile.TemporaryDirectory()
settings.configure(
    DEBUG=False, SECRET_KEY="for this table only", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__,
    USE_TZ=True, STATIC_URL="/static/",
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{folder.name}/db"}},
    INSTALLED_APPS=[f"django.contrib.{name}" for name in (
        "admin", "auth", "contenttypes", "sessions", "messages")],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware"],
    TEMPLATES=[{
        "BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
        "OPTIONS": {"context_processors": [
            "django.template.context_processors.request",
            "django.contrib.auth.context_processors.auth",
            "django.contrib.messages.context_processors.messages"]}}],
)
django.setup()

from django.contrib import admin  # noqa: E402  (It must be set up first.)
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402

call_command("migrate", verbosity=0)
User.objects.create_superuser("root", password="secret")


def query(request):
    return JsonResponse(request.GET.dict())


def fields(request):
    one = request.headers["X-One"]
    return HttpResponse(one, content_type="text/plain", headers={"X-One": one})


def upload(request):
    file = request.FILES["file"]
    content = file.read()
    return HttpResponse(f"{file.name} {len(content)} {zlib.crc32(content)}")


def of_json(request):
    import json

    return JsonResponse({"got": json.load(request)})


def stream(request):
    pieces = [f"piece {number}\n" for number in range(3)]

    async def one_by_one():
        for piece in pieces:
            yield piece

    # (Each kind of server has its own; the other one is buffered, with a warning.)
    content = one_by_one() if hasattr(request, "scope") else iter(pieces)
    return StreamingHttpResponse(content, content_type="text/plain")


def redirect(request):
    response = HttpResponseRedirect("/")
    response.set_cookie("seen", "1")
    return response


urlpatterns = [
    path("", lambda request: HttpResponse("hello", content_type="text/plain")),
    path("query", query), path("headers", fields), path("json", of_json),
    path("form", lambda request: HttpResponse(request.POST["name"])), path("upload", upload),
    path("stream", stream), path("redirect", redirect), path("admin/", admin.site.urls),
]
wsgi, asgi = get_wsgi_application(), get_asgi_application()

# What differs from one visit to the next: tokens, times, and what is hashed of them.
VARIES = [rb'csrfmiddlewaretoken" value="\w+', rb"(csrftoken|sessionid|messages)=[\w.:-]*",
          rb"expires=[^;]+", rb"\d+ minutes?\b", rb"\d\d?:\d\d(:\d\d)? ?[ap.m]*"]
FORM = "Content-Type: application/x-www-form-urlencoded"


def more(ask):
    """A visit to the admin: named responses."""
    login = ask("GET", "/admin/login/")
    yield "admin's form", login
    token = re.search(rb'csrfmiddlewaretoken" value="(\w+)', login.body)[1].decode()
    cookies = cookies_of(login)
    entered = ask(
        "POST", "/admin/login/?next=/admin/", [FORM, f"Cookie: {cookies}"],
        f"csrfmiddlewaretoken={token}&username=root&password=secret&next=/admin/".encode(),
    )
    yield "log in", entered
    cookies = cookies_of(entered)
    form = ask("GET", "/admin/auth/user/add/", [f"Cookie: {cookies}"])
    yield "form of a user", form
    token = re.search(rb'csrfmiddlewaretoken" value="(\w+)', form.body)[1].decode()
    yield "add a user", ask(
        "POST", "/admin/auth/user/add/", [FORM, f"Cookie: {cookies}"],
        f"csrfmiddlewaretoken={token}&username=ada&usable_password=true&password1=of4pCwz9"
        "&password2=of4pCwz9&_save=Save".encode())
    users = ask("GET", "/admin/auth/user/", [f"Cookie: {cookies}"])
    assert b"ada" in users.body, users.body[:2000]
    yield "list of users", users


def cookies_of(answer):
    return "; ".join(value.split(";")[0] for name, value in answer.fields if name == "set-cookie")
