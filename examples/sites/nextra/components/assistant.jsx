import Script from 'next/script';

/** Assistant loads Docent's widget once. It stays while readers go from page to page. */
export function Assistant() {
  return (
    <Script
      src="https://docent.example.com/widget/v1.js"
      data-domain="ferry.test"
      data-key="dct_pub_..."
    />
  );
}

/** Search opens the assistant, which searches and answers in one dialog. */
export function Search() {
  return (
    <button type="button" className="ask" data-docent-open>
      Search or ask <kbd>Ctrl K</kbd>
    </button>
  );
}
