"""Django's settings. What differs between machines comes from config.env alone."""

import os

from config import env, unfold
from config.database import database
from config.policy import PAGES

ENV = env.read(os.environ)
SERVES_HTTPS = ENV.public_url.startswith("https:")

DEBUG = False
UNFOLD = unfold.UNFOLD
SECRET_KEY = ENV.secret_key
FIELD_ENCRYPTION_KEYS = ENV.field_encryption_keys
EGRESS_ALLOW = ENV.egress_allow
PUBLIC_URL = ENV.public_url
DATA_DIR = ENV.data_dir
ALLOWED_HOSTS = list(ENV.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(ENV.csrf_trusted_origins)

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "config.apps.RosterAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "axes",
    "django_htmx",
    "django_q",
    "ninja",  # for the files of its API page
    "agents_admin",
    "runtime",
    "web",
    "config.apps.ConfigConfig",
]

MIDDLEWARE = [
    "web.errors.json_errors",
    "config.middleware.Security",
    "config.middleware.ContentPolicy",
    "config.middleware.Session",
    "config.middleware.Common",
    "config.middleware.Csrf",
    "config.middleware.Authentication",
    "config.middleware.Messages",
    "config.middleware.FrameOptions",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [env.CHECKOUT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.csp",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": database(ENV)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/chat/"
LOGOUT_REDIRECT_URL = "login"

# A person is locked out from one address at a time, so nobody can lock out somebody else.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = 0.25  # hours
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "locked.html"
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False

DATA_UPLOAD_MAX_MEMORY_SIZE = 8_000_000  # a document of 5 MB is edited in a form
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000  # a roster of a hundred agents is, too: a line has a dozen fields

SECURE_CSP = PAGES
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31536000 if SERVES_HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SERVES_HTTPS else None
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SERVES_HTTPS
SESSION_COOKIE_NAME = "roster_session"
CSRF_COOKIE_NAME = "roster_csrf"
CSRF_COOKIE_HTTPONLY = True
# In the cookie, so that showing a message never reads the session in the event loop.
MESSAGE_STORAGE = "django.contrib.messages.storage.cookie.CookieStorage"
X_FRAME_OPTIONS = "DENY"

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATICFILES_DIRS = [env.CHECKOUT / "platform" / "static"]

OPENAI_API_KEY = ENV.openai_api_key
OPENAI_BASE_URL = ENV.openai_base_url
OPENAI_MODEL = ENV.openai_model
EVENTS_COLLAPSE_HOURS = ENV.events_collapse_hours
EVENTS_KEEP_DAYS = ENV.events_keep_days
RUNS_KEEP_DAYS = ENV.runs_keep_days

# Wake-ups only: the state of the work is in our own tables, so a task is short and keeps no result.
Q_CLUSTER = {
    "name": "roster",
    "orm": "default",
    "workers": 2,  # one is on a shift of runs most of the time
    "timeout": 300,
    "retry": 360,  # longer than timeout, or the same work runs twice
    "max_attempts": 3,
    "save_limit": -1,
    "catch_up": False,
    "poll": 1,
    "label": "Background work",
    "log_level": "WARNING",
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "django.request": {"level": "ERROR"},  # a refused request is not news
        "agents_admin": {"level": "INFO"},
        "runtime": {"level": "INFO"},
        "web": {"level": "INFO"},
    },
}
