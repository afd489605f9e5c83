"""Somebody with a browser who logs in: cookies, redirects, and the forms on the way.

Arguments: where to begin, who (login, or subject at a provider), and the provider's authority.
Stdin: the password, where there is one. Prints each step, without secrets.
"""

import http.cookiejar
import re
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request

STEPS_MAX = 10
# Nobody else is asked anything.
LOOPBACK = ("localhost", "127.0.0.1")


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def main():
    url, who, *authority = sys.argv[1:]
    password = sys.stdin.readline().rstrip("\n")
    context = ssl.create_default_context(cafile=authority[0] if authority else None)
    browser = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()),
        urllib.request.HTTPSHandler(context=context),
        Stay(),
    )
    form = None
    for _ in range(STEPS_MAX):
        data = urllib.parse.urlencode(form).encode() if form else None
        try:
            answer = browser.open(url, data)
        except urllib.error.HTTPError as error:
            answer = error
        except urllib.error.URLError as error:
            print("nobody answers:", error.reason)
            return 1
        page = answer.read().decode()
        shown = urllib.parse.urlsplit(url)
        print("POST" if form else "GET", shown.netloc, shown.path, answer.status, flush=True)
        sent_on = answer.headers.get("Location")
        state = re.search(r'name=state value="([^"]+)"', page)
        if sent_on:
            url, form = urllib.parse.urljoin(url, sent_on), None
            if urllib.parse.urlsplit(url).hostname not in LOOPBACK:
                print("sent on to", urllib.parse.urlsplit(url).netloc)
                return 0
        elif answer.status == 200 and state:
            url = urllib.parse.urljoin(url, "/auth/login")
            form = {"state": state.group(1), "login": who, "password": password}
        elif answer.status == 200 and 'name="sub"' in page and form is None:
            form = {"sub": who}
        else:
            print(re.sub(r"<style>.*</style>|<[^>]*>", " ", page).strip())
            return 0 if answer.status == 200 else 1
    print("sent around in circles")
    return 1


sys.exit(main())
